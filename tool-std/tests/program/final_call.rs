//! Calls of `call` and `batch`, after which the program ends: their commands, and the plan mode that
//! they leave.

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

// F155
#[test]
fn the_user_sees_plan_mode_and_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("a folder in it");
    let run = |args: &[&str]| {
        let state = ["--state-dir", state.to_str().expect("the path is text")];
        run_in_state(&root, &[&state, args].concat())
    };
    let write = ["--yes", "call", "write_file", "--path", "a.txt", "--content", "x"];
    assert_eq!(out(&run(&["doctor", "--json"])).matches("\"plan_mode\": null").count(), 1);
    assert!(!err(&run(&["rules", "list"])).contains("plan mode"));
    assert_eq!(run(&["call", "plan_enter"]).status.code(), Some(0));
    let denied = run(&write);
    assert_eq!(denied.status.code(), Some(3), "{}", err(&denied));
    assert!(
        err(&denied).ends_with("hint: `tool-std state end-plan` ends plan mode\n"),
        "{}",
        err(&denied)
    );
    let note =
        "on, because a tool entered it: only tools that read may run; `state end-plan` ends it";
    let listed = err(&run(&["rules", "list"]));
    assert!(listed.contains(&format!("note: plan mode is {note}\n")), "{listed}");
    assert!(out(&run(&["doctor"])).contains(&format!("plan mode   {note}\n")));
    let ended = run(&["state", "end-plan"]);
    assert_eq!((ended.status.code(), err(&ended).as_str()), (Some(0), "plan mode has ended\n"));
    assert_eq!(run(&write).status.code(), Some(0));
    assert_eq!(err(&run(&["state", "end-plan"])), "plan mode is off\n");
}

fn run_in_state(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .arg("--root")
        .arg(root)
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}
