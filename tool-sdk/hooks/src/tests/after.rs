//! Tests of `PostToolUse` and `PostToolUseFailure` hooks.

use super::*;

/// Returns the text and the hint for the model after `hook` ran.
async fn read_after(event: HookEvent, hook: Value) -> (String, Option<String>) {
    let seen = TestCall::new();
    let mut result = match event {
        HookEvent::PostToolUse => Ok(Output::json(&json!({ "secret": 1 })).unwrap().title("note")),
        _ => Err(ToolError::failed("no room").hint("delete a note")),
    };
    seen.after(&config(&[(event, hook)]), &mut result).await;
    if let Ok(output) = &result {
        assert_eq!(output.title_text(), Some("note"));
    }
    let text = result.map_or_else(|error| error.to_string(), |output| output.into_text());
    (text, seen.halted.into_inner())
}

// F66
#[tokio::test]
async fn results_and_failures_can_be_commented_on() {
    use HookEvent::{PostToolUse as Post, PostToolUseFailure as Failed};

    let specific = |key: &str, value: Value| says(&json!({ "hookSpecificOutput": { key: value } }));
    let objects = json!({ "command": "echo 'too bold' >&2; exit 2" });
    let label = "`echo`";
    let undone = "the tool had run by then; its effect is not undone";
    let cases = [
        (
            Post,
            objects.clone(),
            format!("{{\"secret\":1}}\nthe hook {label} objects: too bold\n{undone}"),
        ),
        (
            Failed,
            objects,
            format!("no room\nthe hook {label} objects: too bold\nhint: delete a note"),
        ),
        (
            Post,
            specific("additionalContext", json!("mind the gap")),
            "{\"secret\":1}\nmind the gap".to_owned(),
        ),
        (
            Failed,
            specific("additionalContext", json!("mind the gap")),
            "no room\nmind the gap\nhint: delete a note".to_owned(),
        ),
        (Post, specific("updatedToolOutput", json!("hidden")), "hidden".to_owned()),
        (Post, specific("updatedToolOutput", json!({ "a": 1 })), r#"{"a":1}"#.to_owned()),
        (Failed, specific("updatedToolOutput", json!("hidden")), "hidden".to_owned()),
        (Post, json!({ "command": "exit 1" }), "{\"secret\":1}".to_owned()),
        (Post, json!({ "command": "echo done" }), "{\"secret\":1}".to_owned()),
    ];
    for (event, hook, expected) in cases {
        assert_eq!(read_after(event, hook).await, (expected, None));
    }
}

#[tokio::test]
async fn a_turn_can_be_ended_after_success_and_after_failure() {
    let stop = says(&json!({ "continue": false, "stopReason": "enough", "reason": "it is late" }));
    for event in [HookEvent::PostToolUse, HookEvent::PostToolUseFailure] {
        let (text, halted) = read_after(event, stop.clone()).await;
        assert_eq!(halted.as_deref(), Some("enough"));
        assert!(text.contains("ends the turn: it is late"), "{text}");
    }
}

// A result is withheld when a hook that must check it fails.
#[tokio::test]
async fn a_result_can_be_withheld_until_it_was_seen() {
    let hook = json!({ "command": "exit 1", "on_error": "deny" });
    let (text, _) = read_after(HookEvent::PostToolUse, hook).await;
    assert!(text.contains("the result is not shown") && !text.contains("secret"), "{text}");
}

// F71: another hook's replacement does not reveal a withheld result, in either order.
#[tokio::test]
async fn a_withheld_result_is_not_replaced() {
    let broken = json!({ "command": "exit 1", "on_error": "deny" });
    let told = |key: &str| says(&json!({ "hookSpecificOutput": { key: "the secret is 1" } }));
    let objects = json!({ "command": "echo 'the secret is 1' >&2; exit 2" });
    for other in [told("updatedToolOutput"), told("additionalContext"), objects] {
        for hooks in [[broken.clone(), other.clone()], [other, broken.clone()]] {
            let hooks = hooks.map(|hook| (HookEvent::PostToolUse, hook));
            let mut result = Ok(Output::text("secret"));
            TestCall::new().after(&config(&hooks), &mut result).await;
            let text = result.unwrap_err().to_string();
            assert!(text.contains("the result is not shown"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

// Structured output and metadata may repeat the replaced text.
#[tokio::test]
async fn a_replaced_result_keeps_nothing_of_the_old_value() {
    let hook = says(&json!({ "hookSpecificOutput": { "updatedToolOutput": "hidden" } }));
    let mut result = Ok(Output::text("secret")
        .structured(json!("secret"))
        .metadata("first", "secret")
        .display(json!("secret")));
    TestCall::new().after(&config(&[(HookEvent::PostToolUse, hook)]), &mut result).await;
    assert_eq!(result.unwrap(), Output::text("hidden"));
}

// F66
#[tokio::test]
async fn long_context_goes_to_a_file_and_the_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(20 << 10);
    let specific = json!({ "hookSpecificOutput": { "additionalContext": long } });
    for kept in [None, Some(folder.path().join("kept.txt"))] {
        let seen = TestCall { kept: kept.clone(), ..TestCall::new() };
        let hooks = config(&[
            (HookEvent::PreToolUse, says(&specific)),
            (HookEvent::PostToolUse, says(&specific)),
        ]);
        let context = seen.before(&hooks).await.into_details().unwrap().context.remove(0);
        let mut result = Ok(Output::text("done"));
        seen.after(&hooks, &mut result).await;
        let end = match &kept {
            Some(path) => {
                format!("\n[10240 more bytes; all of it is in `{}`]", path.display())
            }
            None => "\n[10240 more bytes left out]".to_owned(),
        };
        let expected = format!("{}{end}", &long[..10 << 10]);
        assert_eq!(context, expected);
        assert_eq!(result.unwrap().as_text(), format!("done\n{expected}"));
        if let Some(path) = kept {
            assert_eq!(std::fs::read_to_string(path).unwrap(), long);
        }
    }
}
