//! Tests of `PreToolUse` hooks.

use std::fs;
use std::path::Path;

use tool_sdk_core::internal::{DecisionDetails, HookVerdict};

use super::*;

/// Returns the decision of commands before a call.
async fn before(hooks: &[Value]) -> HookDecision {
    let hooks: Vec<_> = hooks.iter().map(|hook| (HookEvent::PreToolUse, hook.clone())).collect();
    unnamed(TestCall::new().before(&config(&hooks)).await)
}

/// Removes the sentence that names the hooks.
fn unnamed(opinion: HookDecision) -> HookDecision {
    match opinion.into_details() {
        Some(spoken) => HookDecision::from_details(DecisionDetails {
            sentence: None,
            rewritten_by: None,
            rewriters: Vec::new(),
            ..*spoken
        }),
        None => HookDecision::none(),
    }
}

// F71: the reason names the hook that denied.
#[tokio::test]
async fn every_denial_names_its_command() {
    let no = json!({ "command": "./guard.sh 2>&1; echo 'not on Fridays' >&2; exit 2" });
    let quiet = json!({ "command": "KEY=hunter2 scripts/quiet; exit 2" });
    let broken = json!({ "args": ["/opt/broken"] });
    let hooks = [no, quiet, broken].map(|hook| (HookEvent::PreToolUse, hook));
    let spoken = TestCall::new().before(&config(&hooks)).await.into_details().unwrap();
    let expected = "the hook `guard.sh` says: not on Fridays\n\
        the hook `quiet` says: sh: 1: scripts/quiet: not found\n\
        the hook `broken` could not be run, so the call is denied";
    let expected = expected.lines().collect::<Vec<_>>();
    let sentence = spoken.sentence.unwrap();
    let found: Vec<_> = sentence.lines().collect();
    assert_eq!((found[0], found[found.len() - 1]), (expected[0], expected[2]));
    assert!(found[1].starts_with("the hook `quiet` says"), "{sentence}");
}

// MC1: a name that the tool only has next to others can deny the call, and never allow it.
#[tokio::test]
async fn a_name_that_the_tool_does_not_have_only_forbids() {
    for (says, matcher, expected) in [
        ("deny", "note_plain", HookVerdict::Deny),
        ("ask", "note_.*n", HookVerdict::Ask),
        ("allow", "note_plain", HookVerdict::None),
        ("allow", "note_plain|write_note", HookVerdict::Allow),
    ] {
        let answer = json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": says,
        } });
        let hook = json!({
            "type": "command", "command": format!("echo '{answer}'"), "may_allow": true,
        });
        let hooks = json!({ "PreToolUse": [{ "matcher": matcher, "hooks": [hook] }] });
        let (hooks, errors) = ExternalHooks::from_value(&hooks);
        assert_eq!(errors, []);
        let mut seen = TestCall::new();
        seen.definition.also = vec![ToolName::from_static("note_plain")];
        let spoken = seen.before(&hooks).await.into_details();
        let verdict = spoken.map(|spoken| spoken.verdict).unwrap_or_default();
        assert_eq!(verdict, expected, "{says} {matcher}");
    }
}

// F67: warns once of permission request hooks without an approver.
#[tokio::test]
async fn warns_of_request_hooks_without_an_approver() {
    let warned = async |hooks: &ExternalHooks, has_approver: bool| {
        let seen = TestCall { has_approver, ..TestCall::new() };
        let _ = seen.before(hooks).await;
        seen.warned.into_inner().unwrap()
    };
    let hooks = config(&[(HookEvent::PermissionRequest, json!({ "command": "true" }))]);
    let expected = "the hook true (PermissionRequest[0].hooks[0]) never runs: there is no approver, \
        so there are no permission requests";
    assert_eq!(warned(&hooks, true).await, [""; 0]);
    assert_eq!(warned(&hooks, false).await, [expected]);
    assert_eq!(warned(&hooks, false).await, [""; 0]);

    let others = config(&[(HookEvent::PreToolUse, json!({ "command": "true" }))]);
    assert_eq!(warned(&others, false).await, [""; 0]);
}

// F67, F168: an observer is notified when each command starts and ends.
#[tokio::test]
async fn every_command_is_told_when_it_begins() {
    let seen = TestCall::new();
    let both =
        [HookEvent::PreToolUse, HookEvent::PostToolUse].map(|event| (event, says(&json!({}))));
    let hooks = config(&both);
    let _ = seen.before(&hooks).await;
    seen.after(&hooks, &mut Ok(Output::text("done"))).await;
    let ended: Vec<_> = seen.runs.lock().unwrap().iter().map(|run| run.hook.clone()).collect();
    let expected = ["cat (PreToolUse[0].hooks[0])", "cat (PostToolUse[0].hooks[0])"];
    assert_eq!(*seen.begun.lock().unwrap(), expected);
    assert_eq!(ended, expected);
}

fn decides(decision: &str, reason: &str) -> Value {
    says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    } }))
}

/// Commands that print a word and then a denial in UTF-16.
const UTF_16_LE: &str = r#"printf 'log\n{"decision":"block"}' | od -An -v -tx1 | tr ' ' '\n' | grep . \
    | while read byte; do printf "\\$(printf %o 0x$byte)\\0"; done"#;
const UTF_16_BE: &str = r#"printf 'log\n{"decision":"block"}' | od -An -v -tx1 | tr ' ' '\n' | grep . \
    | while read byte; do printf "\\0\\$(printf %o 0x$byte)"; done"#;

/// A file that is not executable.
fn not_executable(folder: &Path) -> String {
    let file = folder.join("plain");
    fs::write(&file, "#!/bin/sh\nexit 0\n").unwrap();
    file.display().to_string()
}

// F17, F71: a deciding hook that fails in any way denies, and the reason says how it failed.
#[tokio::test]
async fn a_broken_command_never_lets_a_call_through() {
    let folder = tempfile::tempdir().unwrap();
    let plain = not_executable(folder.path());
    let hangs = "sleep 300 & wait";
    let cases = [
        (json!({ "args": ["/no/such/guard"] }), "could not be run"),
        (json!({ "command": "/no/such/guard" }), "failed with exit code 127"),
        (json!({ "args": [plain] }), "could not be run"),
        (json!({ "command": plain }), "failed with exit code 126"),
        (json!({ "command": "exit 1" }), "failed with exit code 1"),
        (json!({ "command": "exit 127" }), "failed with exit code 127"),
        (json!({ "command": "kill -9 $$" }), "was ended by signal 9"),
        (json!({ "command": hangs, "timeout": 0.3 }), "timed out after 0.3 s"),
        (
            json!({ "command": "head -c 200000 /dev/zero | tr '\\0' ' '; echo '{\"decision\":\"block\"}'" }),
            "gave an answer that cannot be read",
        ),
        (json!({ "command": "echo '{'" }), "gave an answer that cannot be read"),
        (json!({ "command": "echo '{'; yes | head -c 2000000" }), "gave an answer"),
        // The output encoding of some Windows shells.
        (
            json!({ "command": "printf '{\\0\"\\0d\\0e\\0\\377\\376'" }),
            "gave an answer that cannot be read",
        ),
        (json!({ "command": "printf 'log \\377'" }), "gave an answer that cannot be read"),
        // HK1: UTF-16 without a byte order mark, after a log line, in both byte orders, and partly.
        (json!({ "command": UTF_16_LE }), "gave an answer that cannot be read"),
        (json!({ "command": UTF_16_BE }), "gave an answer that cannot be read"),
        (json!({ "command": format!("echo log; {UTF_16_LE}") }), "gave an answer"),
        // HK1: the decision is in the part of the output that was dropped.
        (
            json!({ "command": "yes | head -c 60000; echo '{\"decision\":\"block\"}'; yes | head -c 60000" }),
            "gave an answer that cannot be read",
        ),
        (json!({ "command": "yes | head -c 2000000" }), "gave an answer that cannot be read"),
    ];
    for (hook, expected) in cases {
        let opinion = before(std::slice::from_ref(&hook)).await.into_details().unwrap();
        assert_eq!(opinion.verdict, HookVerdict::Deny, "{hook}");
        assert!(opinion.reason.contains(expected), "{hook}: {}", opinion.reason);
        assert!(!opinion.reason.contains("reject"), "{}", opinion.reason);

        let mut ignored = hook.clone();
        ignored["on_error"] = "ignore".into();
        assert_eq!(before(&[ignored]).await, HookDecision::none(), "{hook}");
    }
}

// F17: unusual behaviour that is not a failure.
#[tokio::test]
async fn a_command_need_not_read_nor_be_quiet_nor_clean_up() {
    let fine = [
        "exec 0<&-; exit 0",
        "yes | head -c 60000",
        "sleep 3 & echo 'left behind'",
        "echo 'all good'",
        "echo '{}'",
        "exit 0",
    ];
    for line in fine {
        assert_eq!(before(&[json!({ "command": line })]).await, HookDecision::none(), "{line}");
    }
    let noisy = json!({ "command": "echo '{}'; echo 'not on Fridays' >&2; exit 2" });
    assert_eq!(before(&[noisy]).await, HookDecision::deny("not on Fridays"));
}

// HK1: the details of a failure are for the host.
#[tokio::test]
async fn the_model_does_not_read_what_a_broken_command_printed() {
    let seen = TestCall::new();
    let hook = json!({ "command": "echo 'key=hunter2' >&2; exit 3" });
    let opinion =
        seen.before(&config(&[(HookEvent::PreToolUse, hook)])).await.into_details().unwrap();
    assert!(!opinion.reason.contains("hunter2"));
    let runs = seen.runs.into_inner().unwrap();
    assert_eq!(runs[0].hook, "echo (PreToolUse[0].hooks[0])");
    assert!(runs[0].outcome.starts_with("failed: ") && runs[0].outcome.ends_with("key=hunter2"));
}

// F65, F67: a denial wins, an ask overrides an allow, an allow needs `may_allow`.
#[tokio::test]
async fn the_strictest_of_all_answers_holds() {
    let (no, ask, yes) = (decides("deny", "no"), decides("ask", "ask"), decides("allow", "yes"));
    let nothing = json!({ "command": "true" });
    let stop = says(&json!({ "continue": false, "stopReason": "stop" }));
    let cases = [
        (vec![yes.clone()], HookDecision::none()),
        (vec![trusted(yes.clone())], HookDecision::allow("yes")),
        (vec![trusted(yes.clone()), nothing], HookDecision::allow("yes")),
        (vec![trusted(yes.clone()), ask.clone()], HookDecision::ask("ask")),
        (vec![no.clone(), trusted(yes), ask, no.clone()], HookDecision::deny("no\nno")),
        (vec![no, stop], HookDecision::halt("no\nstop")),
    ];
    for (hooks, expected) in cases {
        assert_eq!(before(&hooks).await, expected, "{hooks:?}");
    }
}

// F64, HK2: patches are merged in configured order, not in the order of completion.
#[tokio::test]
async fn changes_compose_in_configured_order() {
    let change = |wait: &str, input: Value, verdict: &str| {
        let answer = json!({ "hookSpecificOutput": {
            "permissionDecision": verdict, "updatedInput": input, "additionalContext": wait,
        } });
        json!({ "command": format!("sleep {wait}; cat <<'END'\n{answer}\nEND") })
    };
    let slow = change("0.2", json!({ "title": "slow", "by": "slow" }), "ask");
    let fast = change("0", json!({ "title": "fast" }), "allow");
    let opinion = before(&[slow.clone(), fast.clone()]).await.into_details().unwrap();
    let changed = json!({ "title": "fast", "text": "b", "by": "slow" });
    assert_eq!(opinion.arguments.as_deref(), Some(changed.to_string().as_str()));
    assert_eq!(
        (opinion.verdict, opinion.context),
        (HookVerdict::Ask, vec!["0.2".into(), "0".into()])
    );

    let denied = before(&[slow, fast, decides("deny", "no")]).await.into_details().unwrap();
    assert_eq!((denied.arguments, denied.reason.as_str()), (None, "no"));
}

// F64, F67: an allow does not cover the changes of another command.
#[tokio::test]
async fn an_allow_is_one_of_what_the_call_became() {
    let change = |verdict: &str, input: Value| {
        trusted(says(&json!({ "hookSpecificOutput": {
            "permissionDecision": verdict, "updatedInput": input,
        } })))
    };
    let title = || json!({ "title": "other" });
    let nothing = || trusted(says(&json!({ "decision": "approve" })));
    for (hooks, expected) in [
        (vec![change("allow", title())], HookVerdict::Allow),
        (vec![change("allow", title()), nothing()], HookVerdict::Allow),
        (vec![change("allow", title()), change("allow", title())], HookVerdict::Allow),
        (
            vec![change("allow", title()), change("allow", json!({ "text": "x" }))],
            HookVerdict::None,
        ),
        (
            vec![change("allow", json!({ "title": "x" })), change("allow", title())],
            HookVerdict::Allow,
        ),
        (vec![nothing(), change("ask", title())], HookVerdict::Ask),
    ] {
        let spoken = before(&hooks).await.into_details().unwrap();
        assert_eq!(spoken.verdict, expected, "{hooks:?}");
    }
}

// F71
#[tokio::test]
async fn every_allow_names_its_command() {
    for (answer, expected) in [
        (json!({ "decision": "approve" }), "the hook `cat` allows it"),
        (json!({ "decision": "approve", "reason": "fine" }), "the hook `cat` says: fine"),
    ] {
        let hooks = config(&[(HookEvent::PreToolUse, trusted(says(&answer)))]);
        let spoken = TestCall::new().before(&hooks).await.into_details().unwrap();
        assert_eq!(spoken.sentence.as_deref(), Some(expected));
    }
}

// F71: only the hooks that changed arguments are named.
#[tokio::test]
async fn every_change_names_its_command() {
    let change = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "updatedInput": { "title": 5 },
    } });
    let named = |name: &str| json!({ "command": format!("NAME={name} echo '{change}'") });
    let quiet = json!({ "command": "true" });
    let hooks = [named("a"), quiet, json!({ "command": format!("printf '%s' '{change}'") })];
    let hooks = hooks.map(|hook| (HookEvent::PreToolUse, hook));
    let spoken = TestCall::new().before(&config(&hooks)).await.into_details().unwrap();
    assert_eq!(spoken.rewritten_by.as_deref(), Some("echo` and `printf"));
    let places = ["echo (PreToolUse[0].hooks[0])", "printf (PreToolUse[2].hooks[0])"];
    assert_eq!(spoken.rewriters, places);
}

// F67: the input of a command; a command that is configured twice runs twice.
#[tokio::test]
async fn every_command_reads_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let copies = json!({ "command": "cat >> input; pwd >> folders; echo $CLAUDE_PROJECT_DIR" });
    let hooks = config(&[(HookEvent::PreToolUse, copies.clone()), (HookEvent::PreToolUse, copies)]);
    let seen = TestCall::new();
    assert_eq!(seen.before(&hooks.in_folder(folder.path())).await, HookDecision::none());

    let runs: Vec<_> = seen.runs.into_inner().unwrap();
    assert_eq!(runs.iter().map(|run| run.outcome.as_str()).collect::<Vec<_>>(), ["none", "none"]);
    let folders = fs::read_to_string(folder.path().join("folders")).unwrap();
    assert_eq!(folders.lines().count(), 2);
    let input = fs::read_to_string(folder.path().join("input")).unwrap();
    let first = serde_json::Deserializer::from_str(&input).into_iter::<Value>().next();
    let expected = json!({
        "session_id": "s1",
        "transcript_path": null,
        "cwd": folder.path(),
        "permission_mode": "plan",
        "hook_event_name": "PreToolUse",
        "tool_name": "write_note",
        "tool_input": { "title": "a", "text": "b" },
        "tool_use_id": "c1",
        "agent": "scribe",
        "duration_ms": 7,
    });
    assert_eq!(first.unwrap().unwrap(), expected);
}

#[tokio::test]
async fn a_command_in_the_background_is_not_waited_for_and_has_no_say() {
    let seen = TestCall::new();
    let hook = json!({ "command": "sleep 300; exit 2", "async": true });
    assert_eq!(seen.before(&config(&[(HookEvent::PreToolUse, hook)])).await, HookDecision::none());
    assert_eq!(seen.runs.into_inner().unwrap()[0].outcome, "not waited for");
}

#[tokio::test]
async fn other_tools_and_events_start_nothing() {
    let (hooks, _) = ExternalHooks::from_value(&json!({
        "PreToolUse": [{ "matcher": "read_note", "hooks": [{ "type": "command", "command": "exit 2" }] }],
        "PostToolUse": [{ "hooks": [{ "type": "command", "command": "exit 2" }] }],
    }));
    let seen = TestCall::new();
    assert_eq!(seen.before(&hooks).await, HookDecision::none());
    let mut failed = Err(ToolError::failed("no room"));
    seen.after(&hooks, &mut failed).await;
    assert_eq!(failed.unwrap_err().message(), "no room");
}

// F67
#[tokio::test]
async fn a_matcher_finds_a_tool_by_any_of_its_names_in_any_case() {
    for (matcher, expected) in [
        ("write_note", true),
        ("Write_Note", true),
        ("Read|Jot|Edit", true),
        ("jot", true),
        ("^JOT$", true),
        ("Read|Edit", false),
        ("jotter", false),
    ] {
        let hook = json!({ "type": "command", "command": "exit 2" });
        let config = json!({ "PreToolUse": [{ "matcher": matcher, "hooks": [hook] }] });
        let (hooks, errors) = ExternalHooks::from_value(&config);
        assert_eq!(errors, []);
        let opinion = TestCall::new().before(&hooks).await;
        assert_eq!(opinion != HookDecision::none(), expected, "{matcher}");
    }
}

// F71: `finish` waits for async hooks.
#[tokio::test]
async fn the_end_waits_for_what_runs_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let command = "until [ -e go ]; do sleep 0.05; done; sleep 0.5; touch done";
    let hook = json!({ "command": command, "async": true });
    let hooks = config(&[(HookEvent::PreToolUse, hook)]).in_folder(folder.path());
    assert_eq!(TestCall::new().before(&hooks).await, HookDecision::none());
    assert!(!folder.path().join("done").exists());
    fs::write(folder.path().join("go"), "").unwrap();
    Hook::finish(&hooks).await;
    assert!(folder.path().join("done").exists());
    // A command that hangs is ended by its timeout.
    let hangs = json!({ "command": "sleep 300", "async": true, "timeout": 0.1 });
    let hooks = config(&[(HookEvent::PreToolUse, hangs)]);
    assert_eq!(TestCall::new().before(&hooks).await, HookDecision::none());
    Hook::finish(&hooks).await;
}
