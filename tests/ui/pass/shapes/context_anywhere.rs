//! What does not come from the model, at any place among what does.

use std::sync::Arc;

use serde_json::json;
use tool_sdk::testing::Harness;
use tool_sdk::{Context, State, tool, tools};

use crate::pass::wait;

struct Database(&'static str);

/// Asks.
#[tool(read)]
async fn context_first(
    cx: &Context,
    /// A.
    a: u8,
    State(db): State<Database>,
    /// B.
    mut b: Vec<u8>,
    state: State<Database>,
    owned: Context,
) -> String {
    b.push(a);
    format!("{} {b:?} {} {} {}", cx.tool(), db.0, state.0.0, owned.call_id() == cx.call_id())
}

/// Asks.
#[tool(read)]
fn context_last(
    /// A.
    a: &str,
    State(db): State<Database>,
    cx: &Context,
) -> String {
    format!("{a} {} {}", db.0, cx.tool())
}

/// Asks.
#[tool(read)]
async fn context_only(_: &Context) {}

#[test]
fn the_host_lends_and_the_model_sends() {
    let harness =
        Harness::new(tools![context_first, context_last, context_only]).lend(Database("orders"));
    let text = |name, arguments| wait(harness.ok(name, arguments)).into_text();
    assert_eq!(
        text("context_first", json!({"b": [2], "a": 1})),
        "context_first [2, 1] orders orders true"
    );
    assert_eq!(text("context_last", json!({"a": "x"})), "x orders context_last");
    assert_eq!(text("context_only", json!({})), "done");
}

#[test]
fn a_test_calls_the_function_itself() {
    let cx = tool_sdk::testing::context();
    let db = State(Arc::new(Database("fake")));
    assert_eq!(context_last("x", db, &cx), format!("x fake {}", cx.tool()));
}
