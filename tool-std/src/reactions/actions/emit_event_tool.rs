//! The tool `emit_event`: an event of a kind that rules choose.

use serde_json::{Map, Value};
use tool_sdk::{Context, Output, ToolError, tool};

/// How long the data of an event may be as JSON, in bytes.
const MAX_DATA_BYTES: usize = 16 * 1024;

/// Emit an event, which subscribers see and rules wait for as `emitted:KIND`.
///
/// A rule that reacts to an event of another rule makes a chain, of at most 8 events.
#[tool(
    read,
    hidden,
    category = "rule_action",
    approval(required = |_, _| false),
    display(name = "Event", primary = kind, show(kind, data), summary = "Emitting {kind}"),
    example = r#"{"kind": "build.failed", "data": {"times": 3}}"#
)]
pub async fn emit_event(
    /// The kind of the event.
    #[arg(length = 1..=64, pattern = "^[a-z][a-z0-9_.-]*$")]
    kind: &str,
    /// What the event says, as `event.data` for rules; at most 16 KiB as JSON.
    #[arg(default = Map::new())]
    data: Map<String, Value>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let data = Value::Object(data);
    let length = data.to_string().len();
    if length > MAX_DATA_BYTES {
        return Err(ToolError::invalid_args(format_args!(
            "`data` has {length} bytes as JSON, but may have {MAX_DATA_BYTES}"
        )));
    }
    cx.emit(kind, data);
    Ok(Output::text("Emitted."))
}
