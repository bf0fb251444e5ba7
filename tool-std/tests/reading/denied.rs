//! Permission rules on files, in tools that read and search: denied files are not found, and files
//! that need approval are not shown without it.

use super::*;

/// Calls under these rules; a failure is reported by its kind.
async fn under(
    folder: &TempDir,
    rules: &[&str],
    tool: &str,
    args: serde_json::Value,
) -> Result<String, ErrorKind> {
    let outcome = call_under(folder, rules, tool, args).await;
    outcome.result.map(|output| output.into_text()).map_err(|error| error.kind())
}

async fn call_under(
    folder: &TempDir,
    rules: &[&str],
    tool: &str,
    args: serde_json::Value,
) -> Outcome {
    let registry = Registry::builder().add(tools![read_file, list_dir, glob_files, grep_files]);
    let pipeline = Pipeline::new(registry.build().unwrap())
        .rules(rules.iter().map(|rule| rule.parse::<Rule>().unwrap()));
    let session = Session::new("test").with_service(Workspace::open([folder.path()]).unwrap());
    pipeline.call(&session, Call::new(tool, args.to_string())).await
}

const SECRETS: &[(&str, &str)] = &[
    ("main.rs", "key = env(KEY)\n"),
    (".env", "key = 1\n"),
    ("sub/.env", "key = 2\n"),
    ("sub/a.rs", "key = 3\n"),
];

// F145, F146: a denied file is found by no search and counted in no number, neither its content nor
// its existence.
#[tokio::test]
async fn searches_skip_denied_files() {
    let folder = folder(SECRETS);
    let deny = &["deny read(.env)"][..];
    let grep = |args| under(&folder, deny, "grep_files", args);
    assert_eq!(
        grep(json!({ "pattern": "key" })).await.unwrap(),
        "Found 2 matches in 2 files.\nmain.rs:\n  1: key = env(KEY)\nsub/a.rs:\n  1: key = 3"
    );
    for pattern in ["key = 1", "key = 9"] {
        let found = grep(json!({ "pattern": pattern, "output_mode": "count" })).await.unwrap();
        assert_eq!(found, "No matches found.");
    }
    for (pattern, expected) in
        [("*", "main.rs\nsub/a.rs"), (".env", "No files found."), (".enw", "No files found.")]
    {
        let found = under(&folder, deny, "glob_files", json!({ "pattern": pattern })).await;
        assert_eq!(found.unwrap(), expected, "{pattern}");
    }
    let listed = under(&folder, deny, "list_dir", json!({})).await.unwrap();
    assert!(listed.ends_with("\nmain.rs\nsub/\n  a.rs"), "{listed}");
}

// F146: a higher limit would not help when the paths are too long.
#[tokio::test]
async fn reports_truncated_lists() {
    let names: Vec<String> = (0..400).map(|n| format!("{}{n:03}", "x".repeat(150))).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let args = json!({ "pattern": "*", "limit": 2000 });
    let found = under(&folder(&files), &[], "glob_files", args).await.unwrap();
    let end = "of 400 files. Narrow the pattern or the path.)";
    assert!(found.ends_with(end) && found.contains("\n(Output capped at 50 KiB: showing 3"));
}

// F141, F144: a denied file is not suggested for a similar name.
#[tokio::test]
async fn does_not_suggest_denied_files() {
    let folder = folder(SECRETS);
    for (tool, path) in
        [("read_file", ".en"), ("list_dir", ".env."), ("grep_files", ".en"), ("glob_files", ".en")]
    {
        for (rule, offered) in [("deny read(.env)", false), ("deny read(other)", true)] {
            let mut args = json!({ "path": path });
            if tool.ends_with("_files") {
                args["pattern"] = "x".into();
            }
            let outcome = call_under(&folder, &[rule], tool, args).await;
            let error = outcome.result.unwrap_err().to_string();
            assert_eq!(error.contains("`.env`?"), offered, "{error}");
        }
    }
}

// PA6, F145, F146: a rule that denies a file to one reading tool denies it to the others. A rule
// that denies a whole tool, or always asks for approval, says nothing about files.
#[tokio::test]
async fn files_denied_to_read_file_are_denied_to_searches() {
    let folder = folder(SECRETS);
    let all = ".env\nmain.rs\nsub/.env\nsub/a.rs";
    let open = "main.rs\nsub/a.rs";
    let asked =
        format!("{open}\n(2 files left out by the rules; name one as `path` to ask for it.)");
    for (rules, expected) in [
        (&["deny read_file(.env)"][..], open),
        (&["deny read_file(*.env)"], open),
        (&["deny read(.env)"], open),
        (&["deny read_file(.env)", "allow read"], all),
        (&["deny read_file(.env)", "allow glob_files"], open),
        (&["deny read(.env)", "allow read_file"], open),
        (&["deny read(.env)", "allow glob_files"], all),
        (&["deny read_file(.env)", "deny read_file"], open),
        (&["deny read_file", "allow read_file(*.rs)"], open),
        (&["deny read_file"], all),
        (&["ask read_file"], all),
        (&["ask read_file(.env)"], &asked),
        (&["deny edit(.env)"], all),
        (&["deny read_file(path: .env)"], open),
        (&["deny read(path: *.env)"], open),
        (&["deny *(path: .env)"], open),
        (&["deny read_file(path: .env)", "allow read"], all),
        (&["deny read_file(path: *)", "allow read_file(path: *.rs)"], open),
        (&["deny read_file(path: *)"], all),
        (&["ask read_file(path: .env)"], &asked),
        (&["deny glob_files(pattern: *.env)"], all),
    ] {
        let found = under(&folder, rules, "glob_files", json!({ "pattern": "*" })).await.unwrap();
        let mut found: Vec<_> = found.lines().collect();
        found.sort_by_key(|line| (line.starts_with('('), *line));
        assert_eq!(found.join("\n"), expected, "{rules:?}");
    }
}

// PA6, F145: nor is it found by a search of that file, which requests no approval.
#[tokio::test]
async fn files_denied_to_read_file_cannot_be_searched_by_name() {
    let folder = folder(SECRETS);
    let args = || json!({ "pattern": "key", "path": ".env" });
    for (rules, is_found) in [
        (&["deny read_file(*.env)"][..], false),
        (&["ask read_file(*.env)"], false),
        (&["deny read_file(path: .env)"], false),
        (&["deny read_file"], true),
        (&["deny read_file(sub/*)"], true),
        (&["deny edit(.env)"], true),
    ] {
        let found = under(&folder, rules, "grep_files", args()).await;
        let expected = if is_found { Ok(()) } else { Err(ErrorKind::Denied) };
        assert_eq!(found.map(|_| ()), expected, "{rules:?}");
    }
}

// PA6: nor by a search that starts above the folder with an approval.
#[tokio::test]
async fn searches_from_a_parent_folder_skip_denied_files() {
    let above = folder(&[("root/sub/.env", "key = 2\n"), ("root/a.rs", "key = 3\n")]);
    let inside = TempDir::new_in(above.path()).unwrap();
    fs::create_dir(inside.path().join("sub")).unwrap();
    fs::write(inside.path().join("sub/secret"), "key = 1\n").unwrap();
    let start = above.path().canonicalize().unwrap();
    let args = |tool: &str| match tool {
        "list_dir" => json!({ "path": start, "depth": 9 }),
        _ => json!({ "path": start, "pattern": if tool == "glob_files" { "**/*" } else { "key" } }),
    };
    for tool in ["grep_files", "glob_files", "list_dir"] {
        for (rule, is_found) in [("deny read(sub/*)", false), ("deny read(other/*)", true)] {
            let rules = ["allow external_directory", rule];
            let found = under(&inside, &rules, tool, args(tool)).await.unwrap();
            assert!(found.contains("a.rs"), "{tool}: {found}");
            assert_eq!(found.contains("secret"), is_found, "{tool} {rule}: {found}");
        }
    }
}

// F145, F146: files that need approval are counted.
#[tokio::test]
async fn counts_files_that_need_approval() {
    let folder = folder(SECRETS);
    let ask = &["ask read(.env)"][..];
    let note = "(2 files left out by the rules; name one as `path` to ask for it.)";
    for (tool, args, expected) in [
        ("grep_files", json!({ "pattern": "key = 1" }), "No matches found.\n"),
        ("glob_files", json!({ "pattern": "*" }), "main.rs\nsub/a.rs\n"),
    ] {
        let found = under(&folder, ask, tool, args).await.unwrap();
        assert_eq!(found, format!("{expected}{note}"), "{tool}");
    }
    let listed = under(&folder, ask, "list_dir", json!({})).await.unwrap();
    assert!(listed.ends_with("\nmain.rs\nsub/\n  a.rs\n(2 left out by the rules.)"), "{listed}");
}

// F141, F144, F145, F146: rules on reading apply to every tool that reads.
#[tokio::test]
async fn denied_files_cannot_be_read_by_name() {
    let folder = folder(SECRETS);
    for path in [".env", "./.env", "sub/../.env", "sub//.env"] {
        let read = under(&folder, &["deny read(.env)"], "read_file", json!({ "path": path }));
        assert_eq!(read.await, Err(ErrorKind::Denied), "{path}");
        let args = json!({ "pattern": "key", "path": path });
        let grep = under(&folder, &["deny read(.env)"], "grep_files", args);
        assert_eq!(grep.await, Err(ErrorKind::Denied), "{path}");
    }
    for (tool, args) in [
        ("list_dir", json!({ "path": "sub" })),
        ("glob_files", json!({ "path": "./sub", "pattern": "*" })),
        ("grep_files", json!({ "path": "sub/", "pattern": "x" })),
    ] {
        let called = under(&folder, &["deny read(sub)"], tool, args);
        assert_eq!(called.await, Err(ErrorKind::Denied), "{tool}");
    }
}

#[tokio::test]
async fn rules_match_absolute_paths_and_tool_names() {
    let folder = folder(SECRETS);
    let root = fs::canonicalize(folder.path()).unwrap();
    let absolute = format!("deny read({}/sub/*)", root.display());
    for (rules, expected) in [
        (&[absolute.as_str()][..], &["main.rs", ".env"][..]),
        (&["deny glob_files(*.rs)"], &[".env", "sub/.env"]),
        (&["deny glob(*.rs)"], &[".env", "sub/.env"]),
        (&["deny grep_files(*.rs)"], &[".env", "sub/.env"]),
        (&["deny edit_file(*.rs)"], &["main.rs", ".env", "sub/.env", "sub/a.rs"]),
        (&["deny read(sub/*)", "allow read(sub/a.rs)"], &["main.rs", ".env", "sub/a.rs"]),
    ] {
        let found = under(&folder, rules, "glob_files", json!({ "pattern": "*" })).await.unwrap();
        let found: Vec<_> = found.lines().filter(|line| !line.starts_with('(')).collect();
        assert_eq!(found, expected, "{rules:?}");
    }
}

/// A call of each tool with a path outside of the workspace.
fn outside(path: &Path) -> [(&'static str, serde_json::Value); 4] {
    [
        ("read_file", json!({ "path": path.join("a") })),
        ("list_dir", json!({ "path": path })),
        ("glob_files", json!({ "path": path, "pattern": "*" })),
        ("grep_files", json!({ "path": path, "pattern": "needle" })),
    ]
}

// PA2: paths outside need approval as reads; no mode that only reads forbids them.
#[tokio::test]
async fn paths_outside_need_approval() {
    let (inside, other) = (folder(&[]), folder(&[("a", "needle\n"), (".gitignore", "nothing\n")]));
    let place = other.path().canonicalize().unwrap();
    let allow = format!("allow external_directory({}*)", place.display());
    let deny = format!("deny read({}*)", place.display());
    for (tool, args) in outside(&place) {
        let under = async |rules: &[&str]| under(&inside, rules, tool, args.clone()).await;
        assert_eq!(under(&[]).await, Err(ErrorKind::Denied), "{tool}");
        assert_eq!(under(&["allow read", "allow *_files"]).await, Err(ErrorKind::Denied), "{tool}");
        assert!(under(&[&allow]).await.unwrap().contains('a'), "{tool}");
        assert_eq!(under(&[&allow, &deny]).await, Err(ErrorKind::Denied), "{tool}");

        let registry = Registry::builder().add(tools![read_file, list_dir, glob_files, grep_files]);
        let pipeline = Pipeline::new(registry.build().unwrap()).mode(Mode::Plan);
        let session = Session::new("test").with_service(Workspace::open([inside.path()]).unwrap());
        let call = || Call::new(tool, args.to_string());
        let checked =
            serde_json::to_value(pipeline.check(&session, call()).await.unwrap()).unwrap();
        assert_eq!(checked["decision"], "ask", "{tool}: {checked}");
        let pipeline = pipeline.approver(ScriptedApprover::new([ApprovalResponse::Once]));
        assert!(pipeline.call(&session, call()).await.result.is_ok(), "{tool}");
    }
}

// An approval of a file does not extend to its neighbours.
#[tokio::test]
async fn outside_searches_show_only_approved_paths() {
    let (inside, other) =
        (folder(&[]), folder(&[("secret.txt", "x"), ("a/b", "x"), (".ignore", "b")]));
    let place = other.path().canonicalize().unwrap();
    let allow = &["allow external_directory"][..];
    let registry = Registry::builder().add(tools![read_file]).build().unwrap();
    let pipeline = Pipeline::new(registry).rules([allow[0].parse::<Rule>().unwrap()]);
    let session = Session::new("test").with_service(Workspace::open([inside.path()]).unwrap());
    let slip = json!({ "path": place.join("secret.tx") }).to_string();
    let outcome = pipeline.call(&session, Call::new("read_file", slip.as_str())).await;
    let error = outcome.result.unwrap_err();
    assert_eq!((error.kind(), error.suggestion()), (ErrorKind::NotFound, None));
    // Ignore files above it do not count either.
    let found = json!({ "path": place.join("a"), "pattern": "*" });
    let found = under(&inside, allow, "glob_files", found).await.unwrap();
    assert_eq!(found, place.join("a/b").display().to_string());
}

// PA6, F145: when everything needs approval, a rule for one folder allows no more than that folder.
#[tokio::test]
async fn files_that_need_approval_stay_hidden_in_an_allowed_folder() {
    let folder = folder(SECRETS);
    let registry = Registry::builder().add(tools![read_file, glob_files]).build().unwrap();
    let found = async |mode: Mode, rules: &[&str], reply: Option<ApprovalResponse>| {
        let rules = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
        let pipeline = Pipeline::new(registry.clone()).mode(mode).rules(rules);
        let pipeline = pipeline.approver(ScriptedApprover::new(reply));
        let session = Session::new("test").with_service(Workspace::open([folder.path()]).unwrap());
        let call = Call::new("glob_files", json!({ "pattern": "*" }).to_string());
        let outcome = pipeline.call(&session, call).await;
        let text = outcome.text().into_owned();
        text.lines().filter(|line| !line.starts_with('(')).map(str::to_owned).collect::<Vec<_>>()
    };
    let all = ["main.rs", ".env", "sub/.env", "sub/a.rs"];
    for (mode, asks) in [(Mode::Auto, &["ask read"][..]), (Mode::Strict, &[])] {
        let found = async |rules: &[&str], reply| found(mode, &[asks, rules].concat(), reply).await;
        assert_eq!(found(&["allow read(.)"], None).await, ["No files found."]);
        let some = found(&["allow read(.)", "allow read(sub/*)"], None).await;
        assert_eq!(some, ["sub/.env", "sub/a.rs"]);
        assert_eq!(found(&["allow glob_files"], None).await, all);
        // An approval to search the folder includes its files.
        assert_eq!(found(&[], Some(ApprovalResponse::Once)).await, all);
        let patterns = vec![".".to_owned()];
        assert_eq!(found(&[], Some(ApprovalResponse::Session { patterns })).await, all);
    }
}

// A file that needs approval is not shown without it.
#[tokio::test]
async fn files_that_need_approval_stay_hidden_until_approved() {
    let folder = folder(SECRETS);
    let registry = Registry::builder().add(tools![grep_files]).build().unwrap();
    let session = Session::new("test").with_service(Workspace::open([folder.path()]).unwrap());
    let asking = Pipeline::new(registry).rules(["ask read(.env)".parse::<Rule>().unwrap()]);
    let search = json!({ "pattern": "key", "output_mode": "files" }).to_string();
    let found = async |pipeline: &Pipeline| {
        let outcome = pipeline.call(&session, Call::new("grep_files", search.as_str())).await;
        outcome.text().lines().filter(|line| line.ends_with(".env")).count()
    };
    assert_eq!(found(&asking).await, 0);

    let patterns = vec![".env".to_owned()];
    let asking = asking.approver(ScriptedApprover::new([ApprovalResponse::Session { patterns }]));
    let named = json!({ "pattern": "key", "path": ".env" }).to_string();
    let outcome = asking.call(&session, Call::new("grep_files", named.as_str())).await;
    assert!(outcome.text().contains("key = 1"), "{}", outcome.text());
    assert_eq!(found(&asking).await, 1);
    assert_eq!(found(&asking.mode(Mode::Bypass)).await, 2);
}

// PA6: a search that a rule allowed had no approval, so files that need one are not shown.
#[tokio::test]
async fn an_allow_rule_does_not_replace_approvals() {
    let folder = folder(SECRETS);
    let note = "(3 files left out by the rules; name one as `path` to ask for it.)";
    let some = &["ask read", "allow read(.)", "allow read(main.rs)"][..];
    for (rules, mode, approver, expected) in [
        (some, Mode::Auto, false, format!("main.rs\n{note}")),
        (&some[1..], Mode::Strict, false, format!("main.rs\n{note}")),
        (&some[..1], Mode::Auto, true, "main.rs\nsub/.env\nsub/a.rs\n.env".to_owned()),
        (&["allow edit"], Mode::Strict, true, "main.rs\nsub/.env\nsub/a.rs\n.env".to_owned()),
        (&["allow read"], Mode::Strict, false, "main.rs\nsub/.env\nsub/a.rs\n.env".to_owned()),
        (some, Mode::Bypass, false, "main.rs\nsub/.env\nsub/a.rs\n.env".to_owned()),
    ] {
        let registry = Registry::builder().add(tools![read_file, glob_files]).build().unwrap();
        let mut pipeline = Pipeline::new(registry)
            .rules(rules.iter().map(|rule| rule.parse::<Rule>().unwrap()))
            .mode(mode);
        if approver {
            pipeline = pipeline.approver(ScriptedApprover::new([ApprovalResponse::Once]));
        }
        let session = Session::new("test").with_service(Workspace::open([folder.path()]).unwrap());
        let call = Call::new("glob_files", json!({ "pattern": "*" }).to_string());
        let outcome = pipeline.call(&session, call).await;
        let text = outcome.text();
        let (mut found, mut expected): (Vec<_>, Vec<_>) =
            (text.lines().collect(), expected.lines().collect());
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{rules:?} {mode}");
    }
}

// PA2, PA6: files outside that rules deny, or that need approval, are not found by a search there.
#[tokio::test]
async fn outside_searches_skip_denied_files() {
    let (inside, other) = (folder(&[]), folder(&[("pub/p", "key\n"), ("private/k", "key\n")]));
    let place = other.path().canonicalize().unwrap();
    let rule = |action: &str, below: &str| {
        format!("{action} external_directory({}{below})", place.display())
    };
    for (tool, args) in outside(&place) {
        if tool == "read_file" {
            continue;
        }
        let args = match tool {
            "list_dir" => json!({ "path": place, "depth": 9 }),
            "glob_files" => json!({ "path": place, "pattern": "**/*" }),
            _ => json!({ "path": args["path"], "pattern": "key" }),
        };
        for (rules, is_found) in [
            (["allow external_directory".to_owned(), rule("deny", "/private/**")], false),
            (["allow external_directory".to_owned(), rule("ask", "/private/**")], false),
            (["ask external_directory".to_owned(), rule("allow", "*")], true),
            (["deny external_directory".to_owned(), rule("allow", "*")], true),
            (["allow external_directory".to_owned(), rule("deny", "/other/**")], true),
        ] {
            let rules = rules.each_ref().map(String::as_str);
            let found = under(&inside, &rules, tool, args.clone()).await.unwrap();
            let shows = |name: &str| {
                let mut lines = found.lines().map(|line| line.trim_end_matches(':'));
                lines.any(|line| line.trim_start().rsplit('/').next() == Some(name))
            };
            assert!(shows("p"), "{tool} {rules:?}: {found}");
            assert_eq!(shows("k"), is_found, "{tool} {rules:?}: {found}");
        }
    }
}

// PA6: a rule on the path through a symbolic link applies to what is below it.
#[cfg(unix)]
#[tokio::test]
async fn rules_on_link_paths_apply_through_the_link() {
    let folder = folder(&[("secret/key", "key\n"), ("pub/a", "key\n")]);
    std::os::unix::fs::symlink("../secret", folder.path().join("pub/link")).unwrap();
    for (tool, args) in [
        ("list_dir", json!({ "path": "pub/link" })),
        ("glob_files", json!({ "path": "pub/link", "pattern": "*" })),
        ("grep_files", json!({ "path": "pub/link", "pattern": "key" })),
    ] {
        for (rule, is_found) in [("deny read(pub/link/**)", false), ("deny read(pub/a)", true)] {
            let found = under(&folder, &[rule], tool, args.clone()).await.unwrap();
            let is_shown = found.lines().any(|line| line.trim_end_matches(':').ends_with("key"));
            assert_eq!(is_shown, is_found, "{tool} {rule}: {found}");
        }
    }
}
