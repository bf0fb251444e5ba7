//! The tool `set_state`: a value that rules remember.

use serde_json::{Value, json};
use tool_sdk::{Context, Output, ToolError, tool};

use crate::reactions::ReactionState;

/// Keep a value for the rules of this session, which read it as `state.KEY`.
///
/// At most 256 values, each of at most 16 KiB as JSON. They are gone when the session ends.
#[tool(
    read,
    hidden,
    category = "rule_action",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "State", primary = key, show(key, value), summary = "Setting {key}"),
    example = r#"{"key": "failures", "value": 3}"#
)]
pub async fn set_state(
    /// The name of the value.
    #[arg(length = 1..=64, pattern = "^[A-Za-z_][A-Za-z0-9_]*$")]
    key: &str,
    /// The value, any JSON; `null` removes it.
    value: Value,
    cx: &Context,
) -> Result<Output, ToolError> {
    let state = cx.session().extension::<ReactionState>();
    let before = state.set(key, value.clone())?;
    Ok(Output::text("Kept.").display(json!({ "key": key, "before": before, "after": value })))
}
