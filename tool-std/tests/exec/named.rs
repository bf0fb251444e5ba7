//! Rules that name a folder, a file or the tools in another way than the call does.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};
use tool_sdk::Action::{self, Allow, Ask, Deny};
use tool_sdk::process::{BackgroundCommand, BackgroundProcesses};
use tool_sdk::{Mode, Pipeline, Registry, Rule, Session, Workspace, tools};
use tool_std::exec::exec_command;
use tool_std::fs::{apply_patch, edit_file, read_file};

use crate::support::{Host, check};

/// Makes `secrets/key.txt`, to which `link` leads as well.
fn place(host: &Host) -> PathBuf {
    let root = host.folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("secrets/sub")).unwrap();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("secrets/key.txt"), "x").unwrap();
    symlink("secrets", root.join("link")).unwrap();
    root
}

async fn decide(host: &Host, tool: &'static str, arguments: Value) -> Action {
    check(host, tool, &arguments).await.decision.action
}

// F72, F75: the spelling of the directory does not change the decision.
#[tokio::test]
async fn a_rule_on_the_folder_of_a_command_means_the_place() {
    let patterns = ["secrets", "./secrets", "secrets/", "src/../secrets", "link", "TOP/secrets"];
    for pattern in patterns {
        for (action, expected) in [("deny", Deny), ("ask", Ask)] {
            let host = Host::new(Mode::Auto, &["allow exec_command"]);
            let root = place(&host);
            let pattern = pattern.replace("TOP", root.to_str().unwrap());
            let rules = ["exec_command", "shell", "shell_command"]
                .map(|tool| format!("{action} {tool}(workdir: {pattern})").parse::<Rule>());
            let allow = "allow exec_command".parse();
            let rules = std::iter::once(allow).chain(rules).map(Result::unwrap);
            host.pipeline.set_rules(rules.collect());
            let folders = ["secrets", "./secrets/", "link", "src/../secrets"].map(PathBuf::from);
            for folder in folders.into_iter().chain([root.join("secrets"), root.join("link")]) {
                for (tool, arguments) in [
                    ("exec_command", json!({ "cmd": "cat key.txt", "workdir": folder })),
                    ("shell_command", json!({ "command": "cat key.txt", "workdir": folder })),
                    ("shell", json!({ "command": ["cat", "key.txt"], "workdir": folder })),
                ] {
                    let decided = decide(&host, tool, arguments).await;
                    assert_eq!(decided, expected, "{action} {pattern}: {tool} in {folder:?}");
                }
            }
            for folder in [".", "src"] {
                let arguments = json!({ "cmd": "cat key.txt", "workdir": folder });
                assert_eq!(decide(&host, "exec_command", arguments).await, Allow, "{pattern}");
            }
        }
    }
}

/// A host with tools for files beside the one for commands.
fn with_files(rules: &[&str]) -> Host {
    let tools = tools![apply_patch, edit_file, exec_command, read_file];
    let registry = Registry::builder().add(tools).build().unwrap();
    let rules = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
    Host { pipeline: Pipeline::new(registry).rules(rules), ..Host::open() }
}

// F75: who forbids a file by the argument of the tool that opens it means the file.
#[tokio::test]
async fn a_rule_on_a_path_holds_for_what_has_no_such_argument() {
    let patch = |path: &str| {
        let text = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-x\n+y\n*** End Patch\n");
        ("apply_patch", json!({ "input": text }))
    };
    let command = |cmd: &str| ("exec_command", json!({ "cmd": cmd }));
    let reads = ["deny read(path: secrets/*)"];
    let edits = ["allow exec_command", "allow edit", "deny edit(path: secrets/*)"];
    let only = ["deny read(path: *)", "allow read(path: src/*)"];
    for (rules, (tool, arguments), expected) in [
        (&reads[..], command("cat secrets/key.txt"), Deny),
        (&reads, command("cd secrets && cat key.txt"), Deny),
        (&reads, command("cat link/key.txt"), Deny),
        (&reads, command("cat src/key.txt"), Allow),
        (&["ask read(path: secrets/*)"], command("cat secrets/key.txt"), Ask),
        // What is said of another argument than a path says nothing of files.
        (&["deny read(limit: *)"], command("cat secrets/key.txt"), Allow),
        (&edits, command("echo x > link/key.txt"), Deny),
        (&edits, command("echo x > src/key.txt"), Allow),
        (&edits, patch("link/key.txt"), Deny),
        (&edits, patch("src/key.txt"), Allow),
        (&only, command("cat src/key.txt"), Allow),
        (&only, command("cat secrets/key.txt"), Deny),
    ] {
        let host = with_files(rules);
        let root = place(&host);
        fs::write(root.join("src/key.txt"), "x").unwrap();
        let session = Session::new("test").with_service(Workspace::open([root]).unwrap());
        let host = Host { session, ..host };
        let decided = decide(&host, tool, arguments.clone()).await;
        assert_eq!(decided, expected, "{rules:?}: {arguments}");
        assert!(host.pipeline.toolset().view().unmatched_rules().is_empty(), "{rules:?}");
    }
}

// F72, SH10: the alias of the tool by whose name commands are allowed means all that run them.
#[tokio::test]
async fn a_denial_by_an_alias_means_every_tool_for_commands() {
    for (rule, is_denied) in [
        ("deny exec_command(curl *)", true),
        ("deny Bash(curl *)", true),
        ("deny bash(curl:*)", true),
        ("deny Bash(wget *)", false),
    ] {
        let host = Host::new(Mode::Bypass, &[rule]);
        let cat = BackgroundCommand::new("cat", [""; 0]).terminal(true);
        let cat = host.session.extension::<BackgroundProcesses>().spawn(&cat).unwrap();
        let typed = json!({ "session_id": cat.id(), "chars": "curl x\n" });
        for (tool, arguments) in [
            ("exec_command", json!({ "cmd": "curl x" })),
            ("shell_command", json!({ "command": "curl x" })),
            ("shell", json!({ "command": ["curl", "x"] })),
            ("write_stdin", typed.clone()),
        ] {
            let decided = decide(&host, tool, arguments).await;
            assert_eq!(decided == Deny, is_denied, "{rule}: {tool}");
        }
    }
    // Who allows it speaks of the tool that has it.
    let host = Host::new(Mode::Auto, &["allow bash(curl *)"]);
    assert_eq!(decide(&host, "exec_command", json!({ "cmd": "curl x" })).await, Allow);
    assert_eq!(decide(&host, "shell_command", json!({ "command": "curl x" })).await, Ask);
}
