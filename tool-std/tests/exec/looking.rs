//! Files that a command looks at without asking are judged where they lie.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use tool_sdk::Action::{Allow, Ask, Deny};
use tool_sdk::Mode;

use crate::support::{Host, check};

// F92: what a command looks at without asking is judged as for every other tool.
#[tokio::test]
async fn read_operands_are_checked_at_their_paths() {
    let host = Host::new(Mode::Auto, &["deny read(.env)"]);
    fs::write(host.folder.path().join(".env"), "x").unwrap();
    fs::write(host.folder.path().join("a.txt"), "x").unwrap();
    for (cmd, expected) in [
        ("cat a.txt", Allow),
        ("cat .env", Deny),
        ("head -n 1 ./.env", Deny),
        ("cat /etc/passwd", Ask),
        ("cat ~/.ssh/id_rsa", Ask),
        ("ls ..", Ask),
        ("grep -r x /root", Ask),
        ("grep -f/etc/passwd a.txt", Ask),
        ("grep /etc/passwd a.txt", Allow),
        ("grep x /proc/1/environ", Ask),
        ("cut -d / -f 1 a.txt", Allow),
        ("echo /etc/passwd", Allow),
        ("git status", Allow),
        ("timeout 5 /bin/ls", Allow),
        ("bash -c '/bin/cat a.txt'", Allow),
        ("nice /bin/cat .env", Deny),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}

// F92: a command with an unknown file is not treated as harmless.
#[tokio::test]
async fn only_files_that_are_known_are_looked_at_without_asking() {
    let rules = ["allow read", "deny read(.env)", "deny read(sub/secret)"];
    let commands = ["ln *", "mv *", "touch *"].map(|it| format!("allow exec_command({it})"));
    let rules: Vec<&str> = rules.into_iter().chain(commands.iter().map(|it| &**it)).collect();
    let host = Host::new(Mode::Auto, &rules);
    let root = host.folder.path();
    fs::create_dir(root.join("sub")).unwrap();
    for file in [".env", "a.txt", "b.txt", "list", "sub/secret", "sub/open"] {
        fs::write(root.join(file), "x").unwrap();
    }
    symlink("/etc/passwd", root.join("lnk")).unwrap();
    symlink("/etc/passwd", root.join("sub/l2")).unwrap();
    fs::create_dir(root.join("sub/deep")).unwrap();
    symlink("sub/deep", root.join("up")).unwrap();
    let sub = root.canonicalize().unwrap().join("sub");
    for (cmd, expected) in [
        ("cd && cat .ssh/id_rsa", Ask),
        ("cd - && cat a.txt", Ask),
        ("cd $X && cat a.txt", Ask),
        ("head -1 ln*", Ask),
        ("head -1 *", Ask),
        ("cat $(echo /etc/passwd)", Ask),
        ("echo /etc/passwd | xargs cat", Ask),
        ("cd sub && cat l2", Ask),
        ("cd sub; cat ../lnk", Ask),
        ("cd sub && cd .. && cat lnk", Ask),
        ("cd sub && cd .. && cat a.txt", Allow),
        ("cd sub/../sub && cat open", Allow),
        ("cd sub && cd ../sub && cat secret", Deny),
        // To bash this is the folder of the link.
        ("cd up && cd .. && cat a.txt", Ask),
        ("cd up/../sub && cat open", Ask),
        ("cd up && cat ../secret", Deny),
        ("cd .. && cat x", Ask),
        ("wc --files0-from=list", Ask),
        ("wc --f list", Ask),
        ("grep -flnk x", Ask),
        ("grep -hflnk x", Ask),
        ("grep --file=lnk x", Ask),
        ("grep --fil=lnk x", Ask),
        ("grep -- -x lnk", Ask),
        ("grep --regex=x lnk", Ask),
        ("rg --files /etc", Ask),
        ("cat .en?", Deny),
        ("cat *env", Allow),
        ("grep s .e*", Deny),
        ("base64 .en?", Deny),
        ("cat ./.en[v]", Deny),
        ("cd sub && cat secret", Deny),
        ("cd sub && cat s*", Deny),
        ("cd sub; cat ../.env", Deny),
        ("(cd sub; cat secret)", Deny),
        (&format!("cd {} && cat secret", sub.display()), Deny),
        ("cd sub && cat open && cat < secret", Deny),
        ("cd sub && cat open", Allow),
        ("cd sub && cat o*", Allow),
        ("cat *.txt", Allow),
        ("cat a$?.txt", Ask),
        ("cat a.txt; echo $? $# $$", Allow),
        ("ls *", Ask),
        ("grep -r x a.txt", Allow),
        ("grep -R x .", Ask),
        ("rg --follow x", Ask),
        ("diff -r sub sub", Ask),
        ("ls .*.", Ask),
        ("ls -d .g*", Allow),
        ("ls -d .[!.]*", Deny),
        ("ln -s /etc/passwd new && cat new", Ask),
        ("mv lnk new; head -1 new", Ask),
        ("mv lnk new; git status", Allow),
        ("touch new && cat new", Allow),
        ("diff sub sub", Ask),
        ("diff sub a.txt", Ask),
        ("diff a.txt -- sub", Ask),
        ("diff -u --from-file=sub a.txt", Ask),
        ("diff * a.txt", Ask),
        ("cd sub && diff .. open", Ask),
        ("diff a.txt b.txt", Allow),
        ("diff <(ls) a.txt", Allow),
        ("find -L sub -name x", Ask),
        ("grep x a.txt /dev/null", Allow),
        ("git diff --no-index / sub", Ask),
        ("diff --to-file=/ sub", Ask),
        ("df /", Allow),
        ("ls -la && pwd", Allow),
        ("cd sub && ls", Allow),
        ("git log --oneline | head -5", Allow),
        ("grep -n x < a.txt", Allow),
        ("cat <(cat a.txt) a.txt", Allow),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
    // Where a rule says what may not be read, a rule for reading does not vouch for the rest.
    for cmd in ["cat $(echo .env)", "cat */secret"] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, Ask, "{cmd}: {:?}", checked.decision.reason);
    }
}

// The number of checked files is limited, and the rest needs approval.
#[tokio::test]
async fn many_files_are_one_question() {
    let host = Host::new(Mode::Auto, &["allow exec_command(echo *)", "allow edit", "allow read"]);
    let each = |count: usize, text: &str| {
        (0..count).map(|at| text.replace('@', &at.to_string())).collect::<String>()
    };
    for at in 0..300 {
        fs::write(host.folder.path().join(format!("f{at}")), "x").unwrap();
    }
    for (cmd, expected) in [
        (format!("cat{}", each(160, " f@")), Allow),
        (format!("cat{}", each(161, " f@")), Ask),
        ("ls *".to_owned(), Ask),
        ("ls f1*".to_owned(), Allow),
        ("cat f1 f2; ".repeat(200), Allow),
        (each(128, "echo x > o@; "), Allow),
        (each(129, "echo x > o@; "), Ask),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        let decision = checked.decision;
        assert_eq!(decision.action, expected, "{cmd}: {:?}", decision.reason);
        assert!(decision.subjects.len() < 1000, "{}", decision.subjects.len());
    }
}

// A rule for all commands also covers unknown commands, also in loops.
#[tokio::test]
async fn reads_in_a_loop_need_no_second_approval() {
    let host = Host::new(Mode::Auto, &["allow exec_command"]);
    for cmd in ["for f in *.rs; do wc -l \"$f\"; done", "sudo timeout 5 make", "cat \"$X\""] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, Allow, "{cmd}: {:?}", checked.decision.reason);
    }
    let arguments = json!({ "cmd": "if true; then cat /etc/passwd; fi" });
    let checked = check(&host, "exec_command", &arguments).await;
    assert_eq!(checked.decision.action, Ask);
}

// F92: what git shows of a file is what it says, whichever way it is named.
#[tokio::test]
async fn a_file_that_git_shows_is_judged_by_its_path() {
    let host = Host::new(Mode::Auto, &["deny read(.env)", "deny read(sub/secret)"]);
    let root = host.folder.path();
    for folder in [".git", "sub"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    // Neither is there any more.
    for (workdir, cmd, expected) in [
        (".", "git show HEAD:.env", Deny),
        (".", "git show HEAD:./.env", Deny),
        (".", "git show :0:.env", Deny),
        (".", "git diff HEAD:.env HEAD:a.txt", Deny),
        (".", "git log -L1,3:.env", Deny),
        (".", "git log -L 1,3:.env", Deny),
        (".", "git log -p -- ':/.env'", Deny),
        (".", "git diff -- ':(top).env'", Deny),
        ("sub", "git show HEAD:.env", Deny),
        ("sub", "git cat-file -p HEAD:sub/secret", Deny),
        ("sub", "git show HEAD:./secret", Deny),
        (".", "git show HEAD:a.txt", Allow),
        (".", "git diff --stat -- ':!.env'", Allow),
        (".", "git log --format=%h:%s --since=10:00", Allow),
    ] {
        let arguments = json!({ "cmd": cmd, "workdir": workdir });
        let checked = check(&host, "exec_command", &arguments).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}

// SH10: with a deny rule for reading, a command that prints lines of unnamed files needs
// approval; without one, it does not.
#[tokio::test]
async fn recursive_search_may_print_denied_file() {
    let free = Host::new(Mode::Auto, &[]);
    let bound = Host::new(Mode::Auto, &["deny read(sub/secret)"]);
    for host in [&free, &bound] {
        fs::create_dir(host.folder.path().join("sub")).unwrap();
        fs::write(host.folder.path().join("sub/secret"), "x").unwrap();
        fs::write(host.folder.path().join("a.txt"), "x").unwrap();
    }
    for (cmd, expected) in [
        ("grep -r x .", Ask),
        ("grep -rn x sub a.txt", Ask),
        ("grep -r x", Ask),
        ("grep -d recurse x a.txt", Ask),
        ("grep -rn x a.txt", Allow),
        ("grep x a.txt", Allow),
        ("rg x", Ask),
        ("rg x a.txt", Allow),
        ("rg -t rust x", Ask),
        ("rg x su*", Ask),
        ("cd sub && rg x", Ask),
        ("git grep x", Ask),
        ("git diff", Ask),
        ("git diff --stat", Allow),
        ("git log --oneline -5", Allow),
        ("git log -p", Ask),
        ("git --no-pager show", Ask),
        ("git show --name-only HEAD", Allow),
        ("git show HEAD:a.txt", Allow),
        ("git blame a.txt", Allow),
        ("git blame HEAD~1 -- a.txt", Ask),
        ("git status -sb", Allow),
        ("git status -v", Ask),
        ("git cat-file -p 4b825dc642cb6eb9a060e54bf8d69288fbee4904", Ask),
        ("ls -R && find . -name x && du sub", Allow),
    ] {
        let arguments = json!({ "cmd": cmd });
        let checked = check(&free, "exec_command", &arguments).await;
        assert_eq!(checked.decision.action, Allow, "{cmd}: {:?}", checked.decision.reason);
        let checked = check(&bound, "exec_command", &arguments).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}

// PA7, SH10: who may run a command that writes what it names may not write everything with it.
#[tokio::test]
async fn write_operands_are_checked_at_their_paths() {
    let rules = ["deny edit(sub/secret)", "allow exec_command"];
    let host = Host::new(Mode::Auto, &rules);
    let root = host.folder.path();
    for folder in [".git/hooks", "sub", "more"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["sub/secret", "secret", "a.txt", "hook"] {
        fs::write(root.join(file), "x").unwrap();
    }
    for (cmd, expected) in [
        ("cp a.txt b.txt", Allow),
        ("cp a.txt sub/secret", Deny),
        ("cp secret sub", Deny),
        ("cp -t sub a.txt secret", Deny),
        ("cp --target-directory=sub secret", Deny),
        ("cp --targ sub secret", Deny),
        ("cp secret more", Allow),
        ("cp -S .old secret more", Allow),
        ("cp sub/secret a.txt", Allow),
        ("cp -r more sub", Ask),
        ("mv sub/secret a.txt", Deny),
        ("mv sub other", Ask),
        ("mv a.txt more/", Allow),
        ("ln -s a.txt sub/secret", Deny),
        ("cd sub && ln -sf ../secret", Deny),
        ("echo x | tee -a sub/secret", Deny),
        ("echo x | tee a.txt /dev/stderr", Allow),
        ("touch -r a.txt sub/secret", Deny),
        ("touch new", Allow),
        ("truncate -s 0 sub/secret", Deny),
        ("truncate -s0 a.txt", Allow),
        ("dd if=a.txt of=sub/secret", Deny),
        ("sed -i s/x/y/ sub/secret", Deny),
        ("sed -i.bak -e s/x/y/ sub/secret", Deny),
        ("sed -ne p sub/secret", Allow),
        ("sed -i /x/d a.txt", Allow),
        ("sed --in-place /x/d sub/secret", Deny),
        ("sort a.txt -o sub/secret", Deny),
        ("curl -sSLo sub/secret https://example.com", Deny),
        ("curl -H 'Host: o' https://example.com", Allow),
        ("wget -O sub/secret https://example.com", Deny),
        ("rm sub/secret", Deny),
        ("rm -r sub", Ask),
        ("rm *.o", Allow),
        ("rm */*.o", Ask),
        ("sed -i s/a/b/ a*.txt", Allow),
        ("sed -i s/a/b/ sub/*", Deny),
        ("chmod 600 sub/s*", Deny),
        ("touch $(ls)", Ask),
        ("rm a.txt", Allow),
        ("chmod 600 sub/secret", Deny),
        ("timeout 5 cp a.txt sub/secret", Deny),
        ("cd sub && tee secret", Deny),
        ("mkdir -p new/deep", Allow),
        ("[ -d sub ] || mkdir sub", Allow),
        ("chmod -R 700 sub", Ask),
        ("rm -r s*", Ask),
        ("cp hook .git/hooks/pre-commit", Ask),
        ("cp hook .git/hooks", Ask),
        ("mv more .git", Ask),
        ("echo x | tee .git/hooks/pre-commit", Ask),
        ("sed -i s/x/y/ .git/config", Ask),
        ("touch /etc/new", Ask),
        ("mv a.txt ..", Ask),
        ("tee ~/.bashrc", Ask),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}

// PA7: unnamed files are placed by their target directory.
#[tokio::test]
async fn copied_glob_matches_are_checked_at_target() {
    let host = Host::new(Mode::Auto, &["allow exec_command"]);
    let root = host.folder.path();
    for folder in [".git/hooks", "more"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["a.txt", "hook"] {
        fs::write(root.join(file), "x").unwrap();
    }
    for (cmd, expected) in [
        ("cp *.txt more", Allow),
        ("cp ho* .git/hooks", Ask),
        ("cp a.txt ho* .git/hooks", Ask),
        ("cp -t .git/hooks ho*", Ask),
        ("mv ho* .git", Ask),
        ("cp *.txt /etc", Ask),
        ("cp $(ls) ..", Ask),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}

// PA7: what is only known when it runs may be a file that something obeys.
#[tokio::test]
async fn unknown_file_may_be_protected() {
    let rules = ["allow exec_command", "allow edit", "allow external_directory"];
    let host = Host::new(Mode::Auto, &rules);
    fs::create_dir(host.folder.path().join(".git")).unwrap();
    for (cmd, expected) in [
        ("echo x > a", Allow),
        ("cd \"$PWD/.git\" && echo x >> config", Ask),
        ("echo x > $F", Ask),
        ("echo x > ~/.bashrc", Ask),
        ("cat < $F", Allow),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}

// F92: a folder that is entered step by step is known where no link is on the way.
#[tokio::test]
async fn a_redirection_after_a_step_up_is_judged_where_it_lies() {
    let host = Host::new(Mode::Auto, &["allow edit"]);
    let root = host.folder.path();
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    symlink("sub/deep", root.join("up")).unwrap();
    for (cmd, expected) in [
        ("cd sub && cd .. && echo x > a", Allow),
        ("cd sub && cd .. && echo x > .envrc", Ask),
        ("cd sub/deep/.. && echo x > a", Allow),
        ("cd up && echo x > a", Allow),
        ("cd up && cd .. && echo x > a", Ask),
        ("cd up/.. && echo x > a", Ask),
        ("cd .. && echo x > a", Ask),
        ("cd sub && cd ../.. && echo x > a", Ask),
    ] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}

// F92, SH10: a command that reads the matches of a glob, below home or in an unknown directory,
// needs approval in every mode.
#[tokio::test]
async fn glob_of_unknown_files_needs_approval() {
    const DENIED: &str = "deny read(~/.ssh/*)";
    let commands = [
        "cat @",
        "head -1 @",
        "tail @",
        "tac @",
        "nl @",
        "wc -l @",
        "cut -c 1 @",
        "base64 @",
        "sort @",
        "grep x @",
        "rg x @",
        "stat @",
        "ls @",
        "find @",
        "du @",
        "diff a.txt @",
        "sed -n 1p @",
        "cat a.txt @ | rev",
        "true && cat @",
        "timeout 5 cat @",
        "bash -c 'cat @'",
        "cat @ &",
    ];
    let spellings = [
        "~/.ssh/i*",
        "~/.ssh/*",
        "~/.ssh/i?",
        "~/.ssh/[i]d",
        "~//.ssh/i*",
        "~/.s*/id",
        "~root/.ssh/i*",
        "~+/.ssh/i*",
        "~-/.ssh/i*",
        "$HOME/.ssh/i*",
        "${HOME}/.ssh/i*",
        "\"$HOME\"/.ssh/i*",
        "\"$HOME/.ssh\"/i*",
        "{~,x}/.ssh/i*",
        "{~/.ssh/i*,x}",
        "~/.s{sh,}/i*",
        "~/.ssh/@(i)d",
        "a=~/.ssh/i*",
        "a:~/.ssh/i*",
        "*/i*",
    ];
    let free = Host::new(Mode::Auto, &[]);
    let bound = Host::new(Mode::Bypass, &[DENIED]);
    for command in commands {
        for spelling in spellings {
            let arguments = json!({ "cmd": command.replace('@', spelling) });
            for host in [&free, &bound] {
                let decision = check(host, "exec_command", &arguments).await.decision;
                assert_ne!(decision.action, Allow, "{arguments}: {:?}", decision.subjects);
            }
        }
    }
    // Behind a step, this is a name like any other.
    let arguments = json!({ "cmd": "cat ./~/i*" });
    assert_eq!(check(&bound, "exec_command", &arguments).await.decision.action, Allow);
}

// SH10: what a pattern fits that is not understood, or that another command changes.
#[tokio::test]
async fn glob_from_fallback_scan_may_match_denied_file() {
    let host = Host::new(Mode::Bypass, &["deny read(sub/secret)"]);
    let root = host.folder.path();
    fs::create_dir(root.join("sub")).unwrap();
    fs::write(root.join("sub/secret"), "x").unwrap();
    for cmd in [
        "cat sub/s* &",
        "if true; then cat sub/s*; fi",
        "for i in 1; do head -1 sub/?ecret; done",
        "{ grep x sub/[s]ecret; }",
        "cat {sub,x}/secret",
        "for i in secret x; do cat \"sub/$i\"; done",
        "for i in sub/s*; do cat \"$i\"; done",
        "for i in sub; do cat \"$i\"/s*; done",
        "shopt -s extglob\ncat sub/!(x)",
        "{ cat; } < sub/@(s)ecret",
        "GLOBIGNORE=x; cat sub/*",
        "shopt -s nocaseglob; cat sub/S*",
        "bash -O nocaseglob -c 'cat sub/S*'",
        "ln -s sub new; cat n*/secret",
        "mv sub new; cat new/s*",
    ] {
        let decision = check(&host, "exec_command", &json!({ "cmd": cmd })).await.decision;
        assert_ne!(decision.action, Allow, "{cmd}: {:?}", decision.subjects);
    }
    for cmd in
        ["while read l; do grep 'a*b' a.txt; done < a.txt", "if [ -f a.txt ]; then wc -l a.txt; fi"]
    {
        let decision = check(&host, "exec_command", &json!({ "cmd": cmd })).await.decision;
        assert_eq!(decision.action, Allow, "{cmd}: {:?}", decision.reason);
    }
}

// F72: a rule may name a file by its absolute path, also where it leads to an unknown file.
#[tokio::test]
async fn rule_with_absolute_path_denies_unknown_file() {
    let host = Host::new(Mode::Auto, &[]);
    let root = host.folder.path().canonicalize().unwrap();
    symlink("/etc/passwd", root.join("lnk")).unwrap();
    let rules = ["allow exec_command".to_owned()].into_iter();
    let denied = ["read", "edit"].map(|it| format!("deny {it}({}/lnk)", root.display()));
    host.pipeline.set_rules(rules.chain(denied).map(|rule| rule.parse().unwrap()).collect());
    for cmd in ["cat lnk", "cat ./lnk", "cat < lnk", "echo x > lnk", "cp a ./lnk"] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, Deny, "{cmd}: {:?}", checked.decision.reason);
    }
}

// F92: a file behind a dangling link may be one that a rule denies.
#[tokio::test]
async fn unknown_written_file_may_be_denied() {
    let host = Host::new(Mode::Auto, &["allow *", "deny edit(secret)"]);
    symlink("nowhere", host.folder.path().join("lnk")).unwrap();
    for (cmd, expected) in [("cp a lnk", Ask), ("cp a ./lnk", Ask), ("cp a b", Allow)] {
        let checked = check(&host, "exec_command", &json!({ "cmd": cmd })).await;
        assert_eq!(checked.decision.action, expected, "{cmd}: {:?}", checked.decision.reason);
    }
}
