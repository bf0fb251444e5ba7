//! Commands of `call` and `batch`, after which the program ends.

use std::io::Write as _;

use super::*;

/// Longer than the shortest time that a command may be waited for.
const SLOW: &str = "sleep 1; touch done; echo made";

#[test]
fn a_command_ends_before_the_program_does() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["--yield-time-ms", "250"][..],
        &["--yield-time-ms", "250", "--tty"],
        &["--wait-for", "nothing such"],
    ] {
        let call = ["--yes", "call", "exec_command", "--cmd", SLOW];
        let ran = run_in(folder.path(), &[&call, arguments].concat());
        assert!(out(&ran).contains("Process exited with code 0"), "{}{}", out(&ran), err(&ran));
        std::fs::remove_file(folder.path().join("done")).expect("the command ran to its end");
    }
}

#[test]
fn a_command_of_a_batch_ends_before_the_program_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .arg("--root")
        .arg(folder.path())
        .args(["--state-dir", env!("CARGO_TARGET_TMPDIR"), "--yes", "batch"])
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let line = serde_json::json!({
        "name": "exec_command", "arguments": { "cmd": SLOW, "yield_time_ms": 250 },
    });
    writeln!(program.stdin.take().expect("a pipe"), "{line}").expect("it reads");
    let ran = program.wait_with_output().expect("the program runs");
    let result = json(&ran);
    assert_eq!((ran.status.code(), &result["ok"]), (Some(0), &true.into()), "{result}");
    assert_eq!(result["metadata"]["exit_code"], 0, "{result}");
    assert!(folder.path().join("done").exists(), "{result}");
}

#[test]
fn the_exit_code_tells_whether_the_command_failed() {
    for (command, code) in [("true", 0), ("exit 3", 1), ("kill -9 $$", 1)] {
        let ran = run(&["--yes", "call", "exec_command", "--cmd", command]);
        assert_eq!(ran.status.code(), Some(code), "{command}: {}{}", out(&ran), err(&ran));
    }
}
