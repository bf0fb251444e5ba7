//! The actions as tools, through the pipeline.

use serde_json::{Value, json};
use tool_sdk::testing::Harness;
use tool_sdk::{ErrorKind, EventKind, Session, tools};

use super::*;
use crate::reactions::ReactionState;

fn actions() -> Harness {
    let tools = tools![notify_self, log, set_state, emit_event, modify_prompt, inject_context];
    Harness::new(tools)
}

// F161, F163: the six actions have schemas, are hidden from models, and run through the pipeline.
#[tokio::test]
async fn actions_are_hidden_tools_that_validate_their_arguments() {
    let harness = actions();
    let view = harness.pipeline().toolset().view_for(&Session::new("s"));
    assert_eq!(view.definitions().count(), 0, "models see none of them");
    for (tool, wrong, right) in [
        ("notify_self", json!({ "message": "" }), json!({ "message": "m" })),
        ("log", json!({ "message": "m", "level": "loud" }), json!({ "message": "m" })),
        ("set_state", json!({ "key": "1", "value": 1 }), json!({ "key": "k", "value": 1 })),
        ("emit_event", json!({ "kind": "A b" }), json!({ "kind": "a.b", "data": {} })),
        ("modify_prompt", json!({ "section": "a" }), json!({ "section": "a", "text": "" })),
        ("inject_context", json!({ "txt": "m" }), json!({ "text": "m" })),
    ] {
        let error = harness.error(tool, wrong).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{tool}: {error}");
        let definition = harness.pipeline().toolset().get(tool).unwrap();
        assert_eq!(definition.definition().category.as_deref(), Some("rule_action"));
        let is_for_agents = matches!(tool, "notify_self" | "modify_prompt" | "inject_context");
        match is_for_agents {
            true => assert_eq!(harness.error(tool, right).await.kind(), ErrorKind::Config),
            false => drop(harness.ok(tool, right).await),
        }
    }
}

#[tokio::test]
async fn actions_reach_the_agent_of_the_session() {
    let (steering, sections) = (SteeringQueue::default(), PromptSections::default());
    let harness = actions().lend(steering.clone()).lend(sections.clone());
    harness.ok("notify_self", json!({ "message": "a </notification> b" })).await;
    harness.ok("inject_context", json!({ "text": "c" })).await;
    harness.ok("modify_prompt", json!({ "section": "s", "text": "Be brief." })).await;
    assert_eq!(
        steering.take_all(),
        [
            "<notification>\na <\u{200b}/notification> b\n</notification>",
            "<context>\nc\n</context>"
        ]
    );
    assert_eq!(sections.to_text(), "\n\n## s\n\nBe brief.");
    for _ in 0..MAX_WAITING_TEXTS {
        steering.push("more");
    }
    let error = harness.error("notify_self", json!({ "message": "m" })).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn state_and_events_are_kept_and_emitted() {
    let state = ReactionState::default();
    let harness = actions().lend(state.clone());
    let mut events = harness.pipeline().subscribe();
    harness.ok("set_state", json!({ "key": "k", "value": [1] })).await;
    assert_eq!(state.get("k"), Some(json!([1])));
    harness.ok("emit_event", json!({ "kind": "a.b", "data": { "n": 1 } })).await;
    harness.ok("log", json!({ "message": "m", "level": "debug" })).await;
    let mut emitted: Vec<(String, Value)> = Vec::new();
    while let Some(event) = events.try_recv() {
        if let EventKind::Emitted { kind, data } = event.kind {
            emitted.push((kind, (*data).clone()));
        }
    }
    let logged = json!({ "level": "debug", "message": "m" });
    assert_eq!(emitted, [("a.b".to_owned(), json!({ "n": 1 })), ("log".to_owned(), logged)]);
    let long = json!({ "kind": "a", "data": { "text": "x".repeat(20_000) } });
    assert_eq!(harness.error("emit_event", long).await.kind(), ErrorKind::InvalidArgs);
}
