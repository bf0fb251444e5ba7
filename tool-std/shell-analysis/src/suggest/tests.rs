//! What is offered, and what never is.

use tool_sdk::Pattern;

use super::*;
use crate::{analyze_argv, analyze_script};

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    assert_eq!(suggest_patterns(&analyze_script(script), &|_| false), expected, "{script}");
}

// F85
#[test]
fn suggestions_go_from_specific_to_general() {
    check("git push origin main", &["git push origin main", "git push *"]);
    check("cargo build", &["cargo build", "cargo build *"]);
    check("touch foo.txt", &["touch foo.txt", "touch *"]);
    check("docker ps", &["docker ps", "docker ps *"]);
    check("bun install", &["bun install", "bun install *"]);
    check("./gradlew build", &["./gradlew build", "./gradlew *"]);
    check("/usr/local/bin/tool x", &["/usr/local/bin/tool x", "/usr/local/bin/tool *"]);
    check("timeout 30 go test ./...", &["go test ./...", "go test *"]);
    check("ls && git push", &["git push", "git push *"]);
    check("bash -c 'git push'", &["git push", "git push *"]);
}

#[test]
fn more_words_are_offered_only_as_they_are() {
    check("npm run dev", &["npm run dev"]);
    check("docker compose up web", &["docker compose up web"]);
    check("aws s3 ls bucket", &["aws s3 ls bucket"]);
    // Something else stands where the command should be.
    check("cargo --color never build", &["cargo --color never build"]);
    check("cargo -q --color build", &["cargo -q --color build"]);
    check("git --no-pager p origin", &["git --no-pager p origin"]);
    check("npm --silent run dev", &["npm --silent run dev"]);
    check("cargo --quiet", &["cargo --quiet"]);
    check("cargo +nightly test", &["cargo +nightly test"]);
    check("git p origin", &["git p origin"]);
    check("hg push x", &["hg push x", "hg push *"]);
    check("cargo test 'a b'", &["cargo test 'a b'", "cargo test *"]);
    // A pattern could not say that the star is meant as it is written.
    check("touch '*'", &["touch *"]);
}

// F85: an option that takes no value stays in what is offered, and is not a name of an action.
#[test]
fn an_action_is_named_behind_flags_too() {
    check("cargo --quiet build", &["cargo --quiet build", "cargo --quiet build *"]);
    check("git --no-pager push a", &["git --no-pager push a", "git --no-pager push *"]);
    check(
        "systemctl --user -q stop x",
        &["systemctl --user -q stop x", "systemctl --user -q stop *"],
    );
    check("pip3 -q install x", &["pip3 -q install x", "pip3 -q install *"]);
    check("cargo -q script x", &["cargo -q script x"]);
    check("npm --silent run", &[]);
}

// SH7, F85: the canonical name of a program decides, and the pattern keeps its spelling.
#[test]
fn a_path_hides_no_action() {
    for folder in ["", "/usr/bin/", "./node_modules/.bin/", "~/bin/"] {
        for (command, offered) in [
            ("git push a", "git push *"),
            ("apt install a", "apt install *"),
            ("cargo build", "cargo build *"),
            ("make test", "make test *"),
            ("pip3 install a", "pip3 install *"),
            ("systemctl stop a", "systemctl stop *"),
            ("yarn add a", "yarn add *"),
            ("npm run build", ""),
            ("aws s3 ls", ""),
            ("gh pr list", ""),
            ("go run a.go", ""),
            ("terraform workspace list", ""),
        ] {
            let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
            let argv = [vec![format!("{folder}{}", argv[0])], argv[1..].to_vec()].concat();
            let command = &analyze_argv(&argv).commands[0];
            let wide: Vec<String> =
                rule_patterns(command).into_iter().filter(|it| it.ends_with('*')).collect();
            // A program that begins with `~` is not spelled plainly.
            let is_offered = !offered.is_empty() && !folder.starts_with('~');
            let expected = is_offered.then(|| format!("{folder}{offered}"));
            assert_eq!(wide, expected.into_iter().collect::<Vec<_>>(), "{argv:?}");
        }
    }
}

// SH7: approving one of these commands does not cover the others of the program.
#[test]
fn interpreters_are_offered_only_exactly() {
    for script in [
        "dc x",
        "deno run x.ts",
        "dotnet run",
        "go run x.go",
        "java -jar a.jar",
        "lldb a",
        "oc get x",
        "pipx run x",
        "rails runner x",
        "sqlite3 a.db",
        "psql a",
        "mysql a",
        "mongosh a",
        "redis-cli get a",
        "nodemon a.js",
        "pm2 start a.js",
        "flask run",
        "cargo script a.rs",
        "rust-gdb a",
        "jrunscript a.js",
        "ts-node x.ts",
        "uvicorn a:b",
    ] {
        check(script, &[script]);
    }
}

// SH7: without the word that names the action, a prefix would allow every action.
#[test]
fn a_program_alone_is_offered_only_as_it_is() {
    for script in ["cargo run", "docker", "git stash", "make", "npm", "yarn"] {
        let analysis = analyze_script(script);
        assert!(suggest_patterns(&analysis, &|_| false).iter().all(|it| it == script), "{script}");
    }
    check("make test", &["make test", "make test *"]);
    check("rake x", &["rake x"]);
    check("qemu-x86_64-static x", &[]);
    check("pytest", &["pytest", "pytest *"]);
    check("uv sync", &["uv sync", "uv sync *"]);
}

#[test]
fn nothing_is_offered_for_what_runs_anything() {
    for script in [
        "python x.py",
        "python3.12 -c x",
        "node x.js",
        "bash x.sh",
        "sudo systemctl restart x",
        "env FOO=1 make",
        "rm x",
        "xargs rm",
        "git",
        "npm run",
        "git -C x push",
        "git config a b",
        "make SHELL=x",
        "docker exec x y",
        "crictl exec x y",
        "minikube ssh x",
        "distrobox enter x",
        "python3.13t x.py",
        "kubectl debug x",
        "mosh x",
        "socat x y",
        "editor x",
        "vim.basic x",
        "perl5.36-x86_64-linux-gnu x",
        "zsh5 x",
    ] {
        check(script, &[]);
    }
}

// F85, F87
#[test]
fn nothing_is_offered_for_what_is_dangerous_or_not_plain() {
    for script in [
        "rm -rf x",
        "git push && rm -rf y",
        "git push $(a)",
        "git push > x",
        "git push; eval x",
        "for a in b; do git push; done",
        "A=1 git push",
        "git push &",
        "cargo build; touch x",
        "",
    ] {
        check(script, &[]);
    }
}

// F86
#[test]
fn offered_patterns_cover_only_the_command() {
    let pattern = Pattern::new("git push *");
    let covers = |script| {
        let script = analyze_script(script);
        script.opaque.is_none() && script.commands.iter().all(|one| pattern.matches(&one.text))
    };
    assert!(covers("git push origin main") && covers("git \t push"));
    for script in ["git push x && rm -rf y", "git push $(rm y)", "./git push", "'git push' x"] {
        assert!(!covers(script), "{script}");
    }
}

#[test]
fn rules_count_before_anything_is_offered() {
    let allowed = |text: &str| text == "apple" || text == "cat";
    assert_eq!(
        suggest_patterns(&analyze_script("apple | orange"), &allowed),
        ["orange", "orange *"]
    );
    assert!(suggest_patterns(&analyze_script("apple"), &allowed).is_empty());
    let argv = ["git", "push"].map(String::from);
    assert_eq!(suggest_patterns(&analyze_argv(&argv), &|_| false), ["git push", "git push *"]);
}

/// The folders before a name that make no other program of it.
const FOLDERS: &[&str] = &["", "/usr/bin/", "./x/"];

#[test]
fn every_banned_prefix_stays_banned() {
    for (banned, folder) in BANNED.iter().flat_map(|it| FOLDERS.iter().map(move |at| (it, at))) {
        let mut argv: Vec<String> = banned.iter().map(|&word| word.to_owned()).collect();
        argv[0].insert_str(0, folder);
        let offered = suggest_patterns(&analyze_argv(&argv), &|_| false);
        assert!(offered.is_empty(), "{argv:?}: {offered:?}");
        argv.push("x".to_owned());
        let wide = format!("{} *", argv[..argv.len() - 1].join(" "));
        let offered = suggest_patterns(&analyze_argv(&argv), &|_| false);
        assert!(!offered.contains(&wide), "{argv:?}: {offered:?}");
    }
}

#[test]
fn the_table_names_actions() {
    let source = include_str!("../../../tests/fixtures/opencode-arity/cases.json");
    let cases: serde_json::Value = serde_json::from_str(source).unwrap();
    for case in cases["prefix"].as_array().unwrap() {
        let words =
            |key: &str| -> Vec<String> { serde_json::from_value(case[key].clone()).unwrap() };
        let tokens = words("tokens");
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let prefix = &tokens[..action_arity(&tokens).min(tokens.len())];
        assert_eq!(prefix, words("prefix"), "{tokens:?}");
    }
    for (key, arity) in cases["arity_dictionary"].as_object().unwrap() {
        let tokens: Vec<&str> = key.split(' ').collect();
        let arity = usize::try_from(arity.as_u64().unwrap()).unwrap();
        assert_eq!(action_arity(&tokens), arity, "{key}");
        // No pattern is offered with fewer words than name the action.
        for folder in FOLDERS {
            let more = (tokens.len()..4).map(|_| "x");
            let words = tokens.iter().copied().chain(more).map(str::to_owned);
            let mut argv: Vec<String> = words.collect();
            argv[0].insert_str(0, folder);
            for pattern in suggest_patterns(&analyze_argv(&argv), &|_| false) {
                let words = pattern.trim_end_matches(" *").split(' ').count();
                assert!(!pattern.ends_with('*') || words == arity, "{pattern}");
            }
        }
    }
}

#[test]
fn the_tables_are_in_order() {
    assert!(BANNED.is_sorted() && RUNS_CODE.is_sorted());
    assert!(ARITIES.iter().all(|(_, entries)| entries.is_sorted()));
    assert!(FLAGS.is_sorted() && FLAGS.iter().all(|(_, flags)| flags.is_sorted()));
}
