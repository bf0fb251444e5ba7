//! What hooks make of calls that somebody is to be asked about.

use super::*;
use crate::call::{Call, Outcome};
use crate::context::Context;
use crate::effect::{Risk, RiskClass};
use crate::hook::Priority;
use crate::permission::{Reply, Rule, Scripted};
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::tool::{Display, DynamicTool};

/// A command that allows what it makes of a call.
fn makes(input: &Value) -> Value {
    let decision = json!({ "behavior": "allow", "updatedInput": input });
    says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": decision,
    } }))
}

/// Writes a note with the title `a` behind these hooks, where each is asked about; gives what was
/// shown to somebody who says yes.
async fn write(hooks: &[Value], rules: &[&str]) -> (Outcome, Vec<Value>) {
    write_behind(None, hooks, rules).await
}

/// The same where a hook looks at it `before`.
async fn write_behind(
    before: Option<Value>,
    hooks: &[Value],
    rules: &[&str],
) -> (Outcome, Vec<Value>) {
    let mut definition = Seen::new().definition;
    definition.risk = Risk::new(RiskClass::Write);
    definition.display = Arc::new(Display { sensitive: vec!["key".into()], ..Display::default() });
    definition.parameters = Schema::from_value(json!({
        "type": "object",
        "properties": { "title": { "type": "string" }, "key": { "type": "string" } },
        "required": ["title"],
        "additionalProperties": false,
    }))
    .unwrap();
    let tool =
        DynamicTool::new(definition, |args: Value, _: Context| async move { args.to_string() });
    let requests = hooks.iter().map(|hook| (Event::PermissionRequest, hook.clone()));
    let hooks: Vec<_> = requests.chain(before.map(|hook| (Event::PreToolUse, hook))).collect();
    let somebody = Arc::new(Scripted::always(Reply::Once));
    let pipeline = Pipeline::new(Registry::builder().add(tool).build().unwrap())
        .hook("*", Priority::DEFAULT, config(&hooks))
        .rules(rules.iter().map(|rule| rule.parse::<Rule>().unwrap()))
        .shared_approver(Arc::clone(&somebody) as _);
    let call = Call::new("write_note", r#"{"title":"a","key":"secret"}"#);
    let outcome = pipeline.call(&Session::new("s"), call).await;
    (outcome, somebody.asked().iter().map(|ask| ask.arguments.clone()).collect())
}

/// With which arguments the note was written.
fn ran_with(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.text()).unwrap()
}

// F64, F67: what a hook makes of a call is judged in its place, and nobody is asked about the call
// as it was.
#[tokio::test]
async fn a_call_that_is_changed_and_allowed_runs_changed() {
    let ran = json!({ "title": "b", "key": "secret" });
    let top = says(&json!({ "hookSpecificOutput": { "updatedInput": { "title": "b" } } }));
    let yes = says(&json!({ "decision": "approve" }));
    for (hooks, asked) in [
        (vec![trusted(makes(&json!({ "title": "b" })))], vec![]),
        // All that it read, with its change: what is masked stays what it is.
        (vec![trusted(makes(&json!({ "title": "b", "key": "***" })))], vec![]),
        // It may not allow, or does not; whoever is asked sees what runs.
        (vec![makes(&json!({ "title": "b" }))], vec!["b"]),
        (vec![trusted(top.clone())], vec!["b"]),
        // The other one is asked about what it became, and allows that.
        (vec![top, trusted(yes)], vec![]),
    ] {
        let (outcome, shown) = write(&hooks, &[]).await;
        let titles: Vec<_> = shown.iter().map(|it| it["title"].as_str().unwrap()).collect();
        assert_eq!((ran_with(&outcome), titles), (ran.clone(), asked), "{hooks:?}");
    }
}

// F64: a rule forbids also what a hook made of a call, and a change to nonsense runs nothing.
#[tokio::test]
async fn a_change_is_judged_like_any_call() {
    for (input, rules, why) in [
        (
            json!({ "title": "b" }),
            &["deny write_note(title: b)"] as &[_],
            "the rule `deny write_note(title: b)`",
        ),
        (json!({ "title": 5 }), &[], "changed the arguments to invalid ones"),
        (json!({ "name": "b" }), &[], "changed the arguments to invalid ones"),
    ] {
        let (outcome, shown) = write(&[trusted(makes(&input))], rules).await;
        let text = outcome.text();
        assert!(outcome.result.is_err() && text.contains(why), "{input}: {text}");
        assert!(shown.is_empty(), "{input}");
    }
    // Its allow lifts no more than before the call: not what another hook wants asked.
    let wary = says(&json!({ "hookSpecificOutput": { "permissionDecision": "ask" } }));
    let makes = [trusted(makes(&json!({ "title": "b" })))];
    for (before, rules, asked) in
        [(None, &["ask write_note(title: b)"] as &[_], 0), (Some(wary), &[], 1)]
    {
        let (outcome, shown) = write_behind(before, &makes, rules).await;
        assert_eq!((outcome.result.is_ok(), shown.len()), (true, asked), "{rules:?}");
        assert!(shown.iter().all(|it| it["title"] == "b"));
    }
}

// A hook that goes on changing what it is asked about changes it once: then somebody sees it.
#[tokio::test]
async fn a_call_is_changed_once() {
    let grows = json!({ "command": r#"
        title=$(sed 's/.*"title":"\([^"]*\)".*/\1/')
        echo '{"hookSpecificOutput":{"updatedInput":{"title":"'"$title"'x"}}}'
    "# });
    let (outcome, shown) = write(&[grows], &[]).await;
    assert_eq!(ran_with(&outcome), json!({ "title": "ax", "key": "secret" }));
    assert_eq!(shown.len(), 1);
}

// What a running tool asks for is no call that could become another one.
#[tokio::test]
async fn what_a_tool_asks_for_is_not_changed() {
    let mut definition = Seen::new().definition;
    definition.risk = Risk::new(RiskClass::Read);
    let tool = DynamicTool::new(definition, |_: Value, cx: Context| async move {
        if cx.ask("other", "x").await { "yes" } else { "no" }
    });
    let somebody = Arc::new(Scripted::default());
    let hook = trusted(makes(&json!({ "title": "b" })));
    let pipeline = Pipeline::new(Registry::builder().add(tool).build().unwrap())
        .hook("*", Priority::DEFAULT, config(&[(Event::PermissionRequest, hook)]))
        .shared_approver(Arc::clone(&somebody) as _);
    let outcome = pipeline.call(&Session::new("s"), Call::new("write_note", "{}")).await;
    assert_eq!((outcome.text().as_ref(), somebody.asked().len()), ("no", 1));
}
