//! Recorded cases of matchers, outputs and inputs of Claude Code, and the differences here.

use std::collections::BTreeMap;

use tool_sdk_core::OnError;
use tool_sdk_process::{CapturedOutput, CommandOutput, ExitOutcome};

use super::*;
use crate::matcher::ToolMatcher;

const INPUTS: [(HookEvent, &str); 3] = [
    (
        HookEvent::PreToolUse,
        include_str!(
            "../../tests/fixtures/codex-hooks/schema/pre-tool-use.command.input.schema.json"
        ),
    ),
    (
        HookEvent::PostToolUse,
        include_str!(
            "../../tests/fixtures/codex-hooks/schema/post-tool-use.command.input.schema.json"
        ),
    ),
    (
        HookEvent::PermissionRequest,
        include_str!(
            "../../tests/fixtures/codex-hooks/schema/permission-request.command.input.schema.json"
        ),
    ),
];

/// The result of a recorded case here: verdict, reason, contexts, changes.
#[derive(Debug, PartialEq)]
struct RecordedResult {
    verdict: HookVerdict,
    words: Option<String>,
    contexts: Vec<String>,
    changes: Value,
}

fn captured(text: &str) -> CapturedOutput {
    let mut captured = CapturedOutput::default();
    captured.head.extend_from_slice(text.as_bytes());
    captured
}

fn meaning(
    event: HookEvent,
    code: i32,
    stdout: &str,
    stderr: &str,
) -> Result<HookOutput, HookFailure> {
    let mut finished = CommandOutput::default();
    finished.exit = ExitOutcome::Code(code);
    finished.stdout = captured(stdout);
    finished.stderr = captured(stderr);
    protocol::interpret_exit(event, "x", Duration::from_secs(10), Ok(&finished))
}

// F67
#[test]
fn matchers_are_read_as_recorded() {
    for case in cases("matcher") {
        let pattern = case["matcher"].as_str().unwrap_or_default();
        let matcher = ToolMatcher::parse(pattern);
        assert_eq!(matcher.is_err(), case["config_error"] == true, "{case}");
        let matches = matcher
            .is_ok_and(|it| it.matched_name(case["tool_name"].as_str().into_iter()).is_some());
        assert_eq!(matches, case["matches"] == true, "{case}");
    }
}

/// The cases with another result here. In the recorded ones a failure lets the call run.
fn differences() -> BTreeMap<&'static str, RecordedResult> {
    let came = |verdict, words: Option<&str>, contexts: &[&str]| RecordedResult {
        verdict,
        words: words.map(str::to_owned),
        contexts: contexts.iter().map(|&context| context.to_owned()).collect(),
        changes: Value::Null,
    };
    let says_nothing = "the hook `x` ends the turn";
    BTreeMap::from([
        // An allow is parsed, and counts if the entry has `may_allow`.
        ("allow_without_update", came(HookVerdict::Allow, None, &["preserved"])),
        ("legacy_approve", came(HookVerdict::Allow, None, &[])),
        // The user can be prompted.
        ("ask", came(HookVerdict::Ask, Some("please confirm"), &[])),
        // The result of every tool can be replaced.
        ("post_updated_mcp_output", came(HookVerdict::None, None, &["preserved"])),
        // An allow together with a change is an allow, too.
        (
            "allow_updates_input",
            RecordedResult {
                changes: json!({ "command": "echo rewritten" }),
                ..came(HookVerdict::Allow, None, &[])
            },
        ),
        ("post_continue_false_bare", came(HookVerdict::Halt, Some(says_nothing), &[])),
    ])
}

// F67: recorded outputs have the same meaning, except in the table of differences.
#[test]
fn answers_are_read_as_recorded() {
    let differences = differences();
    for case in cases("output") {
        let name = case["name"].as_str().unwrap();
        let text = |key: &str| case[key].as_str().unwrap();
        let event = match text("event") {
            "PreToolUse" => HookEvent::PreToolUse,
            _ => HookEvent::PostToolUse,
        };
        let code = i32::try_from(case["exit_code"].as_i64().unwrap()).unwrap();
        let answer = meaning(event, code, text("stdout"), text("stderr"));
        if case["run_status"] == "failed" && !differences.contains_key(name) {
            assert!(answer.is_err(), "{name}");
            continue;
        }
        let mut entry = entry(event, json!({ "command": "x" }));
        entry.may_allow = true;
        let said = combine::apply_entry_policy(&entry, answer);
        let found = RecordedResult {
            verdict: said.verdict,
            words: said.reason,
            contexts: said.context.into_iter().collect(),
            changes: match said.patch.is_empty() {
                true => Value::Null,
                false => Value::Object(said.patch),
            },
        };
        let recorded = RecordedResult {
            verdict: match case["run_status"].as_str().unwrap() {
                "blocked" => HookVerdict::Deny,
                "stopped" => HookVerdict::Halt,
                _ => HookVerdict::None,
            },
            words: [&case["block_reason"], &case["feedback_for_model"][0]]
                .into_iter()
                .find_map(|words| words.as_str().map(str::to_owned)),
            contexts: serde_json::from_value(case["additional_contexts"].clone()).unwrap(),
            changes: case["updated_input"].clone(),
        };
        assert_eq!(&found, differences.get(name).unwrap_or(&recorded), "{name}");
    }
}

// HK1: an invalid output is a failure, never a decision.
#[test]
fn an_invalid_output_is_a_failure() {
    let broken = [
        r#"{"decision": "#,
        r#"{"decision": "maybe"}"#,
        r#"{"decision": "approve", "decision": "block"}"#,
        r#"{"continue": "no"}"#,
        r#"{} trailing"#,
        r#"[{"decision": "block"}]"#,
        "[]",
        "loaded 3 rules\n{\"decision\": \"block\"}",
        "INFO {\"hookSpecificOutput\": {\"permissionDecision\": \"deny\"}}",
        "done {\n  \"continue\" : false\n}",
        r#"{"permissionDecision": "deny"}"#,
        r#"{"hookSpecificOutput": {"permissionDecison": "deny"}}"#,
        r#"{"decison": "block"}"#,
        r#"{"hookSpecificOutput": {"permissionDecision": "Deny"}}"#,
        r#"{"hookSpecificOutput": {"permissionDecision": "defer"}}"#,
        r#"{"hookSpecificOutput": {"updatedInput": ["a"]}}"#,
        r#"{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}}"#,
    ];
    for stdout in broken {
        assert!(meaning(HookEvent::PreToolUse, 0, stdout, "").is_err(), "{stdout}");
    }
    let late = format!("{}{}", " ".repeat(200_000), r#"{"decision": "block"}"#);
    assert!(meaning(HookEvent::PreToolUse, 0, &late, "").is_ok(), "it is whole");
    for decision in [
        r#"{"behavior":"allow","updatedPermissions":[]}"#,
        r#"{"behavior":"allow","updatedInput":[]}"#,
        r#"{"behavior":"deny","updatedInput":{}}"#,
        r#"{"updatedInput":{}}"#,
    ] {
        let stdout = format!(r#"{{"hookSpecificOutput":{{"decision":{decision}}}}}"#);
        assert!(meaning(HookEvent::PermissionRequest, 0, &stdout, "").is_err(), "{decision}");
    }
    let change = r#""decision":{"behavior":"allow","updatedInput":{"a":1}}"#;
    let twice = format!(r#"{{"hookSpecificOutput":{{{change},"updatedInput":{{"a":2}}}}}}"#);
    assert!(meaning(HookEvent::PermissionRequest, 0, &twice, "").is_err());
    let change = format!(r#"{{"hookSpecificOutput":{{{change}}}}}"#);
    assert!(meaning(HookEvent::PermissionRequest, 0, &change, "").is_ok());
    for event in [HookEvent::PreToolUse, HookEvent::PostToolUse] {
        assert!(meaning(event, 0, &change, "").is_err(), "{event:?}");
    }
}

// A byte order mark before a JSON object is skipped.
#[test]
fn plain_text_is_no_decision() {
    for stdout in
        ["all good", "[guard] fine", "[1] x", "the decision: continue", "\"decision\"", ""]
    {
        let said = meaning(HookEvent::PreToolUse, 0, stdout, "");
        assert_eq!(said.unwrap(), HookOutput::default(), "{stdout}");
    }
    let marked = "\u{feff}{\"decision\": \"block\"}\n";
    assert_eq!(meaning(HookEvent::PreToolUse, 0, marked, "").unwrap().verdict, HookVerdict::Deny);
}

// User complaint: exit code 2 denies, with any output.
#[test]
fn exit_two_blocks_also_beside_json() {
    for stdout in ["", "{", r#"{"decision":"approve"}"#, r#"{"continue":true}"#] {
        let said = meaning(HookEvent::PreToolUse, 2, stdout, "no\n").unwrap();
        assert_eq!((said.verdict, said.reason.as_deref()), (HookVerdict::Deny, Some("no")));
    }
    let silent = meaning(HookEvent::PreToolUse, 2, "", "");
    let said = combine::apply_entry_policy(
        &entry(HookEvent::PreToolUse, json!({ "command": "x" })),
        silent,
    );
    assert_eq!(said.reason.as_deref(), Some("the hook `x` denies it"));
}

#[test]
fn long_words_are_cut_with_a_note() {
    let said = meaning(HookEvent::PreToolUse, 2, "", &"ä".repeat(8 << 10)).unwrap();
    let reason = said.reason.unwrap();
    assert!(reason.ends_with("\n[6144 more bytes left out]"), "{:.40}", reason);
    assert_eq!(meaning(HookEvent::PreToolUse, 0, "{}", "").unwrap(), HookOutput::default());
}

// The input has exactly the fields of the recorded schemas.
#[test]
fn the_input_is_that_of_the_recorded_schemas() {
    let (hooks, _) = ExternalHooks::from_json("{}");
    for (event, schema) in INPUTS {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let session = Session::default();
        let mut payload = hooks.session_payload(event, &session, Mode::default());
        payload.tool_response = (event == HookEvent::PostToolUse).then_some(&Value::Null);
        let input = serde_json::to_value(payload).unwrap();
        for required in schema["required"].as_array().unwrap() {
            let required = required.as_str().unwrap();
            // Turns and models are not known to hooks.
            let known = input.get(required).is_some() || ["turn_id", "model"].contains(&required);
            assert!(known, "{required}");
        }
        for field in input.as_object().unwrap().keys() {
            let known = schema["properties"].get(field).is_some() || field == "tool_use_id";
            assert!(known, "{field}");
        }
        let modes = &schema["properties"]["permission_mode"]["enum"];
        for mode in Mode::ALL {
            assert!(modes.as_array().unwrap().contains(&json!(permission_mode_name(mode))));
        }
    }
}

// HK1: adding a failing hook never makes the combined decision more permissive.
#[test]
fn a_failure_only_tightens() {
    let hooks = [OnError::Deny, OnError::Ignore].map(|on_error| {
        let mut entry = entry(HookEvent::PreToolUse, json!({ "command": "x" }));
        entry.on_error = on_error;
        entry
    });
    let verdicts = [
        HookVerdict::None,
        HookVerdict::Allow,
        HookVerdict::Ask,
        HookVerdict::Deny,
        HookVerdict::Halt,
    ];
    for verdict in verdicts {
        for entry in &hooks {
            let said = HookOutput { verdict, ..HookOutput::default() };
            let failure = HookFailure { message: "broke".to_owned(), detail: String::new() };
            let both =
                vec![(entry, said), (entry, combine::apply_entry_policy(entry, Err(failure)))];
            let spoken =
                combine::combine_outputs(both, &json!({})).into_details().unwrap_or_default();
            assert!(spoken.verdict >= verdict);
        }
    }
}
