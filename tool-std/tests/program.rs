//! The program, run as its users run it: on this package's own sources.

#![cfg(feature = "application")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the program on this package's folder.
fn run(args: &[&str]) -> Output {
    run_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

fn run_in(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .arg("--root")
        .arg(root)
        .args(["--state-dir", env!("CARGO_TARGET_TMPDIR")])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON value")
}

#[test]
fn what_is_found_can_be_read() {
    let found = run(&[
        "call",
        "grep_files",
        r#"{"pattern": "^pub async fn", "include": "*.rs"}"#,
        "--json",
    ]);
    assert_eq!(found.status.code(), Some(0), "{}", err(&found));
    let found = json(&found);
    let first = &found["display"]["matches"][0];
    let (file, line) =
        (first["file"].as_str().expect("a file"), first["line"].as_u64().expect("a line"));

    let read =
        run(&["call", "read_file", "--path", file, "--offset", &line.to_string(), "--limit", "1"]);
    assert_eq!(read.status.code(), Some(0), "{}", err(&read));
    assert!(out(&read).starts_with(&format!("{line}: pub async fn ")), "{}", out(&read));
}

#[test]
fn a_folder_is_listed() {
    let listed = run(&["call", "list_dir", r#"{"path": "src", "depth": 1}"#]);
    let text = out(&listed);
    for entry in ["fs/", "lib.rs", "main.rs", "search/"] {
        assert!(text.lines().any(|line| line.trim() == entry), "{text}");
    }
}

// F2, F38: wrong arguments lose nothing and say what to send instead.
#[test]
fn wrong_arguments_are_explained() {
    let wrong = run(&["call", "read_file", r#"{"limit": 9000, "pth": "x"}"#]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(out(&wrong), "");
    let message = "error: invalid arguments for `read_file`:\n\
        - `limit` is 9000, but must be between 1 and 5000\n\
        - unknown argument `pth`; did you mean `path`?\n\
        - `path` is required (string): ";
    assert!(err(&wrong).starts_with(message), "{}", err(&wrong));

    let wrong = run(&["call", "read_file", "{", "--json"]);
    assert_eq!(
        (wrong.status.code(), &json(&wrong)["error"]["kind"]),
        (Some(2), &"invalid_args".into())
    );
}

#[test]
fn exit_codes_say_how_it_ended() {
    for (args, code) in [
        (&["list"][..], 0),
        (&["show", "read_file"], 0),
        (&["call", "read_file", r#"{"path": "nothing.here"}"#], 1),
        (&["call", "read_fil", "{}"], 2),
        (&["call", "read_file", "--offset", "zero"], 2),
        (&["nonsense"], 2),
        (&["--root", "/nowhere/at/all", "list_dir"], 2),
        (&["call", "read_file", r#"{"path": "/etc/hostname"}"#], 3),
        (&["call", "read_file", r#"{"path": "../Cargo.toml"}"#], 3),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", out(&output), err(&output));
    }
}

// F11, F18: every format is printed, and fits its provider.
#[test]
fn schemas_fit_every_provider() {
    for format in [
        "mcp",
        "openai",
        "openai-strict",
        "openrouter",
        "anthropic",
        "gemini",
        "portable",
        "tools-json",
    ] {
        let printed = run(&["schema", "--format", format]);
        json(&printed);
        assert_eq!(out(&printed), out(&run(&["schema", "--format", format])), "byte-stable");
        let lint = run(&["schema", "--format", format, "--lint"]);
        assert_eq!(lint.status.code(), Some(0), "{format}: {}", out(&lint));
    }
}

#[test]
fn every_example_is_a_command_that_works() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("src")).expect("a folder in it");
    let program = "fn main() {}\n".repeat(200);
    std::fs::write(folder.path().join("src/main.rs"), program).expect("a file in it");

    let listed = json(&run(&["list", "--json"]));
    let names: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "exec_command",
            "grep_files",
            "kill_session",
            "list_dir",
            "list_sessions",
            "read_file",
            "shell",
            "shell_command",
            "write_stdin",
        ]
    );
    for name in names {
        let definition = json(&run(&["show", name, "--json"]));
        for example in definition["examples"].as_array().into_iter().flatten() {
            let output = run_in(folder.path(), &["call", name, example.as_str().expect("a text")]);
            assert_eq!(output.status.code(), Some(0), "{name} {example}: {}", err(&output));
        }
    }
}
