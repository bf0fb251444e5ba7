//! Checks that every implementation of a store passes.

use std::io;

use crate::permission::Mode;
use crate::plan_store::{
    PlanDraft, PlanStep, PlanStore, SessionPlan, TodoItem, TodoPriority, TodoStatus,
};

/// Checks an empty plan store: what was saved is loaded, versions increase by one, a stale version
/// saves nothing, and keys are apart.
///
/// # Panics
///
/// Panics when the store does not behave so.
///
/// # Examples
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// tool_sdk::testing::check_plan_store(&tool_sdk::MemoryPlanStore::default()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[expect(clippy::expect_used, reason = "a failed operation fails the check")]
pub async fn check_plan_store(store: &impl PlanStore) {
    let saved = |result: io::Result<Option<u64>>| result.expect("the plan can be saved");
    let empty = store.load_plan("a").await.expect("a store without plans can be read");
    assert_eq!(empty, SessionPlan::default(), "a session without a plan has an empty one");

    let mut plan = example_plan();
    assert_eq!(saved(store.save_plan("a", plan.clone()).await), Some(1), "the first version");
    plan.version = 1;
    assert_eq!(store.load_plan("a").await.expect("the plan"), plan, "what was saved is loaded");

    plan.draft = None;
    plan.steps.clear();
    assert_eq!(saved(store.save_plan("a", plan.clone()).await), Some(2), "the next version");
    plan.todos.clear();
    assert_eq!(saved(store.save_plan("a", plan.clone()).await), None, "a stale version");
    plan.version = 7;
    assert_eq!(saved(store.save_plan("a", plan.clone()).await), None, "an unknown version");
    let kept = store.load_plan("a").await.expect("the plan");
    assert_eq!((kept.version, kept.todos.len()), (2, 1), "a refused plan changes nothing");

    let other = store.load_plan("b'; --\u{0}%").await.expect("the plan of another session");
    assert_eq!(other.version, 0, "another session has a plan of its own");
    assert_eq!(saved(store.save_plan("b'; --\u{0}%", other).await), Some(1), "any key is stored");

    store.remove_plan("a").await.expect("the plan can be removed");
    store.remove_plan("a").await.expect("a removed plan can be removed");
    assert_eq!(store.load_plan("a").await.expect("no plan"), SessionPlan::default());
    let other = store.load_plan("b'; --\u{0}%").await.expect("the plan of another session");
    assert_eq!(other.version, 1, "the plan of another session is kept");
}

/// Returns a plan with every field set.
fn example_plan() -> SessionPlan {
    let todo = TodoItem {
        id: "t1".to_owned(),
        content: "write “tests”\n".to_owned(),
        status: TodoStatus::Cancelled,
        priority: Some(TodoPriority::High),
    };
    SessionPlan {
        version: 0,
        explanation: Some("why".to_owned()),
        steps: vec![PlanStep { step: "read".to_owned(), status: TodoStatus::InProgress }],
        todos: vec![todo],
        draft: Some(PlanDraft {
            mode_before: Mode::Strict,
            text: "# plan".to_owned(),
            exit_tool: "end_plan".to_owned(),
        }),
    }
}
