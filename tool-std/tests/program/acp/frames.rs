//! Frames that are no valid messages, and programs that lack a model.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::editor::EditorFolder;

/// Runs `serve acp` on these lines, and returns what it prints.
fn serve_lines(args: &[&str], lines: &[&str]) -> Output {
    let state = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .args(["--config", "/dev/null", "--state-dir"])
        .arg(state.path())
        .args(["serve", "acp"])
        .args(args)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = program.stdin.take().expect("a pipe");
    input.write_all(lines.join("\n").as_bytes()).expect("the program reads");
    drop(input);
    program.wait_with_output().expect("the program ends")
}

fn messages(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn invalid_frames_get_errors() {
    let lines = [
        "nonsense",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":5}}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"x\",\"prompt\":[]}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"x\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}",
        "",
    ];
    let output = serve_lines(&["--model", "ollama/x"], &lines);
    let answers = messages(&output);
    let code =
        |id: Value| answers.iter().find(|it| it["id"] == id).map(|it| it["error"]["code"].clone());
    let uncorrelated: Vec<&Value> =
        answers.iter().filter(|it| it["id"].is_null()).map(|it| &it["error"]["code"]).collect();
    assert_eq!(uncorrelated, [-32700, -32600], "{answers:?}");
    assert_eq!(code(json!(1)), Some(json!(-32601)), "{answers:?}");
    assert_eq!(code(json!(2)), Some(json!(-32602)), "{answers:?}");
    assert_eq!(code(json!(3)), Some(json!(-32002)), "{answers:?}");
    let initialized = answers.iter().find(|it| it["id"] == 4).expect("an answer");
    assert_eq!(initialized["result"]["protocolVersion"], 1, "{answers:?}");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_missing_model_or_key_is_told_with_the_way_out() {
    let folder = EditorFolder::new();
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 },
    });
    let open = json!({
        "jsonrpc": "2.0", "id": 2, "method": "session/new",
        "params": { "cwd": folder.work(), "mcpServers": [] },
    });
    let lines = [initialize.to_string(), open.to_string(), String::new()];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (args, problem) in
        [(&[][..], "no model is chosen"), (&["--model", "openai/x"], "`OPENAI_API_KEY` is not set")]
    {
        let answers = messages(&serve_lines(args, &lines));
        let refused = answers.iter().find(|it| it["id"] == 2).expect("an answer");
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(problem), "{answers:?}");
    }
}
