//! Files below a home directory of the test.

use std::process::{Command, Stdio};

// SH10: a denied file below home stays denied in every spelling and with any allow rule.
#[test]
fn a_file_at_home_stays_forbidden() {
    let home = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join(".ssh/id"), "the key").unwrap();
    let run = |cmd: &str, options: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .arg("--root")
            .arg(root.path())
            .args(["--state-dir", env!("CARGO_TARGET_TMPDIR")])
            .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("HOME", home.path())
            .args(["call", "exec_command", "--cmd", cmd])
            .args(options)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let unasked = ["--no-input"];
    let denied = ["--deny", "read(~/.ssh/*)", "--yes"];
    let bypassed = ["--deny", "read(~/.ssh/*)", "--mode", "bypass", "--yes"];
    for cmd in [
        "cat ~/.ssh/i*",
        "cat ~/.ssh/*",
        "head -1 ~/.ssh/[i]d",
        "base64 ~/.ssh/i?",
        "cat ~/.ssh/i* | rev",
        "bash -c 'cat ~/.ssh/i*'",
        "cat ~/.ssh/id",
        "cat < ~/.ssh/id",
        "cat $HOME/.ssh/id",
        "cat \"$HOME/.ssh/id\"",
        "cd ~/.ssh && cat id",
        "cd && cd .ssh && cat < id",
        "env -C ~/.ssh cat id",
        "tar cf - -C ~/.ssh id",
    ] {
        for options in [&unasked[..], &denied, &bypassed] {
            let refused = run(cmd, options);
            assert_eq!(refused.status.code(), Some(3), "{cmd} {options:?}");
        }
    }
    let asked = run("cat ~/.ssh/i*", &["--yes"]);
    assert!(String::from_utf8_lossy(&asked.stdout).contains("the key"));
}
