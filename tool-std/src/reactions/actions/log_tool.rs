//! The tool `log`: a line in the log of the program.

use serde_json::json;
use tool_sdk::{Context, Output, ToolError, tool};

/// Write a line to the log of the program, and emit it as the event `log`.
///
/// The user sees the log with `--verbose`, and every call in the audit log. A model does not see it.
#[tool(
    read,
    hidden,
    category = "rule_action",
    approval(required = |_, _| false),
    display(name = "Log", primary = message, show(level, message), summary = "{message}"),
    example = r#"{"message": "a command took longer than a minute", "level": "warning"}"#
)]
pub async fn log(
    /// The line.
    #[arg(length = 1..=4_000)]
    message: &str,
    /// How much the line matters.
    #[arg(default = "info", choices("debug", "info", "warning", "error"))]
    level: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    let session = cx.session().id();
    match level {
        "debug" => tracing::debug!(target: "tool_std::reactions", session, "{message}"),
        "warning" => tracing::warn!(target: "tool_std::reactions", session, "{message}"),
        "error" => tracing::error!(target: "tool_std::reactions", session, "{message}"),
        _ => tracing::info!(target: "tool_std::reactions", session, "{message}"),
    }
    cx.emit("log", json!({ "level": level, "message": message }));
    Ok(Output::text("Logged."))
}
