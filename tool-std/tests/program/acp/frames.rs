//! Frames that are not valid messages, and programs that lack a model.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::editor::EditorFolder;

const INITIALIZE: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}";

/// Sends each line to `serve acp`, and waits for its answer. Returns the answers.
fn exchange_lines(args: &[&str], lines: &[&[u8]]) -> Vec<Value> {
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
    let mut output = BufReader::new(program.stdout.take().expect("a pipe")).lines();
    let mut answers = Vec::new();
    for line in lines {
        input.write_all(&[line, &b"\n"[..]].concat()).expect("the program reads");
        let answer = output.next().expect("an answer").expect("text");
        answers.push(serde_json::from_str(&answer).expect("an answer is JSON"));
    }
    drop(input);
    assert_eq!(output.next().map(Result::unwrap_or_default), None);
    let ended = program.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(0));
    answers
}

#[test]
fn invalid_frames_get_errors() {
    let frames: [(&[u8], i64); 9] = [
        (br#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}"#, -32600),
        (INITIALIZE, 0),
        (b"nonsense", -32700),
        (b"\xff{}", -32700),
        (br#"{"jsonrpc":"2.0"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}"#, -32601),
        (br#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":5}}"#, -32602),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#,
            -32002,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"session/set_mode","params":{"sessionId":"x","modeId":"auto"}}"#,
            -32002,
        ),
    ];
    let lines = frames.map(|(line, _)| line);
    let answers = exchange_lines(&["--model", "ollama/x"], &lines);
    for ((line, code), answer) in frames.iter().zip(&answers) {
        let line = String::from_utf8_lossy(line);
        assert_eq!(answer["error"]["code"].as_i64().unwrap_or_default(), *code, "{line}: {answer}");
    }
}

#[test]
fn a_missing_model_or_key_is_told_with_the_way_out() {
    let folder = EditorFolder::new();
    let open = json!({
        "jsonrpc": "2.0", "id": 2, "method": "session/new",
        "params": { "cwd": folder.work(), "mcpServers": [] },
    })
    .to_string();
    for (args, problem) in
        [(&[][..], "no model is chosen"), (&["--model", "openai/x"], "`OPENAI_API_KEY` is not set")]
    {
        let answers = exchange_lines(args, &[INITIALIZE, open.as_bytes()]);
        let message = answers[1]["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(problem), "{answers:?}");
    }
}
