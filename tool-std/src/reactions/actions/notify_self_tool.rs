//! The tool `notify_self`: a message to the agent of the session.

use tool_sdk::{Context, Output, ToolError, tool};

use super::{frame_text, steering_of};

/// Send a message to the agent of this session.
///
/// The agent reads the message before its next request, and answers before it stops. To add
/// something that needs no answer, use `inject_context`.
#[tool(
    read,
    hidden,
    category = "rule_action",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "Notify", primary = message, show(message), summary = "Notifying the agent"),
    example = r#"{"message": "The tests failed three times. Look for the cause before you go on."}"#
)]
pub async fn notify_self(
    /// The message, in the words of a user.
    #[arg(length = 1..=10_000)]
    message: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    steering_of(cx)?.push(frame_text("notification", message));
    Ok(Output::text("The agent reads the message before its next request."))
}
