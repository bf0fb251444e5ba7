//! The tool `inject_context`: something that the agent of the session should know.

use tool_sdk::{Context, Output, ToolError, tool};

use super::{frame_text, steering_of};

/// Add a text to the next request of the agent of this session.
///
/// The agent makes no request for it: a text that comes after its last one waits for the next prompt.
/// To get an answer, use `notify_self`.
#[tool(
    read,
    hidden,
    category = "rule_action",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "Context", primary = text, show(text), summary = "Adding context"),
    example = r#"{"text": "The file was formatted by `cargo fmt` after your change."}"#
)]
pub async fn inject_context(
    /// The text.
    #[arg(length = 1..=10_000)]
    text: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    steering_of(cx)?.push_context(frame_text("context", text));
    Ok(Output::text("The next request of the agent has the text."))
}
