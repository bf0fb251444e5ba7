//! Tests of `batch` with sample tools.

use serde_json::{Value, json};

use super::MAX_LINE;
use crate::test_support::{CliOutput, TestCli};

fn run(lines: impl AsRef<[u8]>, args: &[&str]) -> CliOutput {
    let setting = TestCli { stdin: lines.as_ref().to_vec(), ..TestCli::default() };
    setting.run(&[&["batch"], args].concat())
}

fn results(ran: &CliOutput) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// F48: only the call that needs approval prompts; results come in the order of the calls.
#[test]
fn results_come_in_the_order_of_the_calls() {
    let lines = r#"
        {"id": "a", "name": "kinds", "arguments": {"count": 1}}

        {"id": 2, "name": "say", "arguments": "{\"text\": \"hi\"}"}
        {"name": "echo", "arguments": {"text": "ho"}}
    "#;
    let mut setting = TestCli { stdin: lines.into(), ..TestCli::default() };
    setting.type_lines(&["y"]);
    let ran = setting.run(&["batch"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(setting.shown_text().matches("[y] once").count(), 1);

    let results = results(&ran);
    let ids: Vec<&Value> = results.iter().map(|result| &result["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!(2), &Value::Null]);
    let outputs: Vec<&Value> = results.iter().map(|result| &result["output"]).collect();
    assert_eq!(outputs, ["{\"count\":1}", "hi", "ho"]);
    let tools: Vec<&Value> = results.iter().map(|result| &result["tool"]).collect();
    assert_eq!(tools, ["kinds", "echo", "echo"]);
    assert_eq!(results[0]["structured"], json!({"count": 1}));
    assert!(ran.out.starts_with(r#"{"id":"a","ok":true,"#), "{}", ran.out);
}

#[test]
fn json_is_one_array() {
    let ran = run(r#"{"name": "echo", "arguments": {"text": "x"}}"#, &["--json"]);
    let array: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &array[0]["output"]), (0, &json!("x")));
    assert_eq!(run("", &["--json"]).out, "[]\n");
    assert_eq!(run(" \n\n", &[]).out, "");
}

#[test]
fn a_bad_line_is_a_failed_result_in_its_place() {
    let good = br#"{"id": "good", "name": "echo", "arguments": {"text": "x"}}"#;
    let long = format!(r#"{{"id": 7, "name": "{}"}}"#, "x".repeat(MAX_LINE));
    for (line, id, words) in [
        (&b"{"[..], Value::Null, "is not a valid call"),
        (b"[1]", Value::Null, "is not a valid call"),
        (br#" ["1", "echo", {"text": "x"}]"#, Value::Null, "found an array"),
        (br#"{"id": 7}"#, json!(7), "missing field `name`"),
        (br#"{"id": 7, "name": "echo", "argumens": {}}"#, json!(7), "unknown field `argumens`"),
        (br#"{"id": 7, "name": "echo", "name": "kinds"}"#, json!(7), "duplicate field `name`"),
        (br#"{"id": [7], "name": "echo"}"#, Value::Null, "`id` must be"),
        (br#"{"id": "7", "name": "ecko"}"#, json!("7"), "there is no tool `ecko`"),
        (br#"{"id": "7", "name": ""}"#, json!("7"), "there is no tool ``"),
        (br#"{"id": "7", "name": "echo"}"#, json!("7"), "`text` is required"),
        (br#"{"id": "7", "name": "echo", "arguments": null}"#, json!("7"), ""),
        (br#"{"id": "7", "name": "echo", "arguments": [1]}"#, json!("7"), ""),
        (br#"{"id": "7", "name": "echo", "arguments": "x"}"#, json!("7"), ""),
        (
            br#"{"id": "7", "name": "echo", "arguments": {"text": "a", "text": "b"}}"#,
            json!("7"),
            "text",
        ),
        (b"\xff", Value::Null, "not UTF-8"),
        (long.as_bytes(), Value::Null, "longer than 4 MiB"),
    ] {
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        let ran = run([&good[..], line, good].join(&b'\n'), &[]);
        let results = results(&ran);
        assert_eq!((ran.code, results.len()), (2, 3), "{shown}");
        for at in [0, 2] {
            assert_eq!((&results[at]["ok"], &results[at]["id"]), (&json!(true), &json!("good")));
        }
        let bad = &results[1];
        assert_eq!((&bad["ok"], &bad["id"]), (&json!(false), &id), "{shown}");
        assert!(bad["error"]["kind"].is_string(), "{bad}");
        let message = bad["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{shown}: {message}");
    }
}

#[test]
fn the_exit_code_is_the_worst_of_all_calls() {
    let line = |name: &str, arguments: &str| {
        format!("{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n")
    };
    let good = || line("echo", r#"{"text": "x"}"#);
    let denied = || line("fail", r#"{"kind": "denied"}"#);
    let wrong = || line("echo", "{}");
    let late = || line("fail", r#"{"kind": "timeout"}"#);
    let failed = || line("fail", r#"{"kind": "conflict"}"#);
    for (lines, code) in [
        (vec![good(), good()], 0),
        (vec![good(), failed()], 1),
        (vec![failed(), late(), good()], 4),
        (vec![late(), failed(), wrong()], 2),
        (vec![failed(), late(), wrong(), denied()], 3),
    ] {
        let ran = run(lines.concat(), &["--yes"]);
        assert_eq!(ran.code, code, "{lines:?} {}", ran.out);
    }
    assert_eq!(run(denied(), &[]).code, 3);
}

#[test]
fn calls_come_from_a_file() {
    let setting = TestCli::default();
    setting.write_text("calls.jsonl", r#"{"name": "echo", "arguments": {"text": "x"}}"#);
    assert_eq!(setting.run(&["batch", "calls.jsonl"]).code, 0);
    assert_eq!(setting.run(&["batch", "-"]).out, "");
    let missing = setting.run(&["batch", "missing.jsonl"]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""));
    assert!(missing.err.contains("cannot open `missing.jsonl`"), "{}", missing.err);
}

#[test]
fn prints_events_as_they_happen() {
    let ran = run(r#"{"id": "a", "name": "echo", "arguments": {"text": "x"}}"#, &["--events"]);
    let types: Vec<String> = ran
        .err
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|event| {
            format!("{} {}", event["call"].as_str().unwrap(), event["type"].as_str().unwrap())
        })
        .collect();
    assert_eq!(types, ["a pending", "a started", "a progress", "a completed"]);
}

// F33, F39: a call of an unknown tool emits a terminal event like any other.
#[test]
fn a_call_of_an_unknown_tool_emits_failed() {
    let good = r#"{"id": "a", "name": "echo", "arguments": {"text": "x"}}"#;
    let ran = run(format!("{{\"id\": \"b\", \"name\": \"ecko\"}}\n{good}"), &["--events"]);
    let events = ran.err.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_b: Vec<Value> = events.filter(|event| event["call"] == "b").collect();
    assert_eq!(of_b.iter().map(|event| &event["type"]).collect::<Vec<_>>(), ["failed"]);
    let results = results(&ran);
    assert_eq!([&results[0]["ok"], &results[1]["ok"]], [&json!(false), &json!(true)]);
    assert_eq!(results[1]["output"], "x");
}
