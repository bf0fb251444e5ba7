//! The tool `modify_prompt`: a section of the agent's system prompt.

use serde_json::json;
use tool_sdk::{Context, Output, ToolError, tool};

use super::sections_of;

/// Set or remove a section of the system prompt of the agent of this session.
///
/// The section counts from the next request on, until the session ends or the section is set again.
/// At most 32 sections of 8 KiB each.
#[tool(
    read,
    hidden,
    category = "rule_action",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "Prompt", primary = section, show(section, text), summary = "Changing the prompt: {section}"),
    example = r#"{"section": "release", "text": "A release is being made. Do not push."}"#,
    example = r#"{"section": "release", "text": ""}"#
)]
pub async fn modify_prompt(
    /// The name of the section, which is its heading.
    #[arg(length = 1..=64, pattern = "^[A-Za-z0-9][A-Za-z0-9 _-]*$")]
    section: &str,
    /// The text of the section; empty to remove the section.
    #[arg(length = ..=8_192)]
    text: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    let before = sections_of(cx)?.set(section, text).map_err(ToolError::invalid_args)?;
    let told = match (text.trim().is_empty(), before.is_some()) {
        (true, true) => "The section is removed.",
        (true, false) => "There was no such section.",
        (false, _) => "The next request of the agent has the section.",
    };
    Ok(Output::text(told).display(json!({ "section": section, "before": before, "after": text })))
}
