//! Commands of which a rule does not cover everything: their directory, and appended words.

use std::fs;
use std::process::Command;

use serde_json::json;
use tool_sdk::Action::{self, Allow, Ask, Deny};
use tool_sdk::Mode;

use crate::support::{Host, check};

async fn decided(host: &Host, cmd: &str, workdir: &str) -> (Action, String) {
    let arguments = json!({ "cmd": cmd, "workdir": workdir });
    let decision = check(host, "exec_command", &arguments).await.decision;
    (decision.action, decision.reason.into_owned())
}

// SH10: a rule that ends where the words end that are known is about no more of them.
#[tokio::test]
async fn rule_does_not_cover_appended_words() {
    let allowed = ["git log", "rm -rf", "sed -i s/a/b/", "frob", "cargo test", "xargs *", "find *"];
    let allowed: Vec<String> =
        allowed.iter().map(|it| format!("allow exec_command({it})")).collect();
    let rules: Vec<&str> = allowed.iter().map(|it| &**it).collect();
    let host = Host::new(Mode::Auto, &rules);
    for (cmd, expected) in [
        ("git log", Allow),
        ("frob", Allow),
        ("cargo test", Allow),
        ("sed -i s/a/b/", Allow),
        ("echo x | xargs git log", Ask),
        ("echo x | xargs rm -rf", Ask),
        ("echo x | xargs sed -i s/a/b/", Ask),
        ("echo x | xargs frob", Ask),
        ("echo x | xargs cargo test", Ask),
        ("find . -exec frob '{}' +", Ask),
    ] {
        let (action, reason) = decided(&host, cmd, ".").await;
        assert_eq!(action, expected, "{cmd}: {reason}");
    }
}

// SH10: what may turn out to be what a rule forbids is asked about, and nothing else is.
#[tokio::test]
async fn unknown_words_may_be_denied_ones() {
    let rules = [
        "allow exec_command",
        "deny exec_command(git log *--output=*)",
        "deny exec_command(git push --force *)",
        "deny exec_command(frob --danger *)",
        "deny exec_command(frobctl destroy *)",
        "deny exec_command(git send-pack)",
    ];
    let host = Host::new(Mode::Auto, &rules);
    for (cmd, expected) in [
        ("echo x | xargs git log", Ask),
        ("echo x | xargs git push origin", Allow),
        ("echo x | xargs git push", Ask),
        ("echo x | xargs git send-pack", Deny),
        ("echo x | xargs git -c a=b push", Ask),
        ("echo x | xargs frob", Ask),
        ("echo x | xargs -I{} frob {}", Ask),
        ("echo x | xargs nonsense", Allow),
        ("frob *", Ask),
        ("frob src/*", Allow),
        ("./frob *", Ask),
        ("frobctl $(echo destroy)", Ask),
        ("frobctl \"$(echo destroy)\"", Ask),
        ("frobctl dest*", Ask),
        ("frobctl create $(echo destroy)", Allow),
        ("cargo fmt -- src/*.rs", Allow),
    ] {
        let (action, reason) = decided(&host, cmd, ".").await;
        assert_eq!(action, expected, "{cmd}: {reason}");
    }
}

// SH6, security 1.3: exactly these words mean something else in another folder.
#[tokio::test]
async fn exact_rule_applies_in_default_folder_only() {
    let rules = ["allow exec_command(rm -rf src)", "allow exec_command(sed -i s/a/b/ a.txt)"];
    let host = Host::new(Mode::Auto, &rules);
    for folder in ["src", "sub"] {
        fs::create_dir(host.folder.path().join(folder)).unwrap();
    }
    for cmd in ["rm -rf src", "sed -i s/a/b/ a.txt"] {
        for (workdir, expected) in [(".", Allow), ("sub/..", Allow), ("sub", Ask)] {
            let (action, reason) = decided(&host, cmd, workdir).await;
            assert_eq!(action, expected, "{cmd} in {workdir}: {reason}");
        }
    }
}

// A deny rule also matches the line as written.
#[tokio::test]
async fn a_rule_that_forbids_may_have_the_quotes_of_the_line() {
    let lines = [
        "git commit -m \"a b\"",
        "cat my\\ file",
        "\"git\" push",
        "git   pull",
        "git status && ls",
        "ls | wc -l",
    ];
    for line in lines {
        let rule = format!("deny exec_command({line})");
        let host = Host::new(Mode::Auto, &["allow exec_command", &rule]);
        let (action, reason) = decided(&host, line, ".").await;
        assert_eq!(action, Deny, "{line}: {reason}");
        let (action, reason) = decided(&host, "git fetch", ".").await;
        assert_eq!(action, Allow, "{line}: {reason}");
    }
}

// The settings of a repository that came with what was unpacked name programs that git runs.
#[tokio::test]
async fn git_looks_without_asking_only_at_a_repository_of_the_user() {
    let host = Host::new(Mode::Auto, &[]);
    let root = host.folder.path();
    fs::create_dir(root.join("sub")).unwrap();
    for folder in [".", "nest"] {
        let git = Command::new("git").args(["init", "-q", folder]).current_dir(root).status();
        assert!(git.unwrap().success());
    }
    for (cmd, workdir, expected) in [
        ("git status", ".", Allow),
        ("git status", "sub", Allow),
        ("git status", "nest", Ask),
        ("ls", "nest", Allow),
        ("timeout 5 git log -3", "nest", Ask),
    ] {
        let (action, reason) = decided(&host, cmd, workdir).await;
        assert_eq!(action, expected, "{cmd} in {workdir}: {reason}");
    }
    let allowed = Host::new(Mode::Auto, &["allow exec_command(git *)"]);
    let nest = allowed.folder.path().join("nest");
    assert!(Command::new("git").args(["init", "-q"]).arg(nest).status().unwrap().success());
    assert_eq!(decided(&allowed, "git status", "nest").await.0, Allow);
}

// F80: a mode that only lets tools read lets them look, however a word is quoted.
#[tokio::test]
async fn read_only_commands_run_in_every_mode() {
    let host = Host::new(Mode::Plan, &[]);
    for cmd in ["grep 'a b' x", "echo \"a b\"; ls", "/bin/cat x", "git  status"] {
        let (action, reason) = decided(&host, cmd, ".").await;
        assert_eq!(action, Allow, "{cmd}: {reason}");
    }
}

// F92: listing the names of an external directory needs approval, with any command.
#[tokio::test]
async fn a_pattern_tells_the_names_in_a_folder() {
    let host = Host::new(Mode::Auto, &[]);
    let root = host.folder.path();
    fs::create_dir(root.join("sub")).unwrap();
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    for (cmd, expected) in [
        ("echo *", Allow),
        ("echo sub/*", Allow),
        ("echo /etc/passwd", Allow),
        ("echo /*", Ask),
        ("echo /etc/*", Ask),
        ("printf %s link/*", Ask),
        ("echo ../*", Ask),
    ] {
        let (action, reason) = decided(&host, cmd, ".").await;
        assert_eq!(action, expected, "{cmd}: {reason}");
    }
}
