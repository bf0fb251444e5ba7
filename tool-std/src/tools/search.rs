//! The tool `tool_search`: searches the tools that the session can see by keywords.
//!
//! The pipeline decides which tools are visible and ranks the matches.

use std::fmt::Write as _;

use serde_json::json;
use tool_sdk::{Context, Output, ToolFacts, tool};

/// Search the tools that can be called, by words about what is to be done.
///
/// Shows the name, the description and the parameters of each, the best fit first. A query
/// that is left out lists the tools by name.
#[tool(
    read,
    category = "tools",
    display(name = "Tools", primary = query, summary = "Searching the tools"),
    example = r#"{"query": "read file"}"#
)]
pub fn tool_search(
    /// Words about what is to be done, or a part of a tool's name.
    #[arg(default = "", length = ..=200)]
    query: &str,
    /// How many tools to show at most.
    #[arg(default = 8, range = 1..=50)]
    limit: usize,
    cx: &Context,
) -> Output {
    // The tool itself is a match and is removed; one extra match tells whether there are more.
    let mut found = cx.search_tools(query, limit.saturating_add(2));
    found.retain(|facts| facts.name != *cx.tool());
    let more = found.len() > limit;
    found.truncate(limit);
    if found.is_empty() {
        return Output::text("(No tool fits. Try other words, or no query at all.)");
    }
    let mut text = found.iter().map(format_tool).collect::<Vec<_>>().join("\n\n");
    if more {
        text.push_str("\n\n(There are more. Use other words or a higher limit.)");
    }
    Output::text(text).metadata("tools", found.len()).display(json!({ "tools": found }))
}

/// Formats a tool for the model: name, title, category, description and parameters.
fn format_tool(facts: &ToolFacts) -> String {
    let ToolFacts { name, title, category, description, parameters, .. } = facts;
    let mut text = name.to_string();
    if let Some(title) = title {
        let _ = write!(text, ", {title}");
    }
    if let Some(category) = category {
        let _ = write!(text, " ({category})");
    }
    let _ = write!(text, "\n{description}\nparameters: {parameters}");
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk::testing::{Harness, context};
    use tool_sdk::{ErrorKind, Rule, tool, tools};

    use super::*;

    /// Water the plants.
    #[tool(write, register = false, category = "garden", title = "Water")]
    fn water(
        /// Which plants.
        _plants: String,
    ) {
    }

    /// Tell whether the plants need light.
    #[tool(read, register = false)]
    fn look() {}

    /// Burn the plants.
    #[tool(execute, register = false)]
    fn burn() {}

    fn harness() -> Harness {
        Harness::new(tools![tool_search, water, look, burn])
    }

    async fn names(harness: &Harness, arguments: serde_json::Value) -> Vec<String> {
        let output = harness.ok("tool_search", arguments).await;
        let data = output.display_data().cloned().unwrap_or_default();
        let tools = data["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    // F107
    #[tokio::test]
    async fn shows_description_and_parameters() {
        let output = harness().ok("tool_search", json!({"query": "water"})).await;
        assert_eq!(
            output.as_text(),
            "water, Water (garden)\nWater the plants.\nparameters: {\"type\":\"object\",\
             \"properties\":{\"_plants\":{\"type\":\"string\",\"description\":\"Which plants.\"}},\
             \"required\":[\"_plants\"],\"additionalProperties\":false}"
        );
    }

    // F107
    #[tokio::test]
    async fn lists_tools_by_name_without_a_query() {
        let harness = harness();
        assert_eq!(names(&harness, json!({})).await, ["burn", "look", "water"]);
        assert_eq!(names(&harness, json!({"query": "plants", "limit": 1})).await, ["burn"]);
        let text = harness.ok("tool_search", json!({"limit": 2})).await.into_text();
        assert!(text.ends_with("(There are more. Use other words or a higher limit.)"), "{text}");
        let text = harness.ok("tool_search", json!({"limit": 3})).await.into_text();
        assert!(!text.contains("There are more"), "{text}");
    }

    // F107: tools that the session may not call are not listed.
    #[tokio::test]
    async fn finds_only_visible_tools() {
        let harness = harness();
        let rules = ["deny burn".parse::<Rule>().unwrap()];
        harness.pipeline().set_rules(rules.into_iter().collect());
        assert_eq!(names(&harness, json!({"query": "plants"})).await, ["look", "water"]);
        assert_eq!(names(&harness, json!({"query": "burn"})).await, [""; 0]);
    }

    #[tokio::test]
    async fn no_matching_tool_is_not_an_error() {
        let text = harness().ok("tool_search", json!({"query": "submarine"})).await.into_text();
        assert_eq!(text, "(No tool fits. Try other words, or no query at all.)");
        assert_eq!(tool_search("", 8, &context()).as_text(), text);
    }

    #[tokio::test]
    async fn rejects_arguments_out_of_range() {
        for arguments in [json!({"limit": 0}), json!({"limit": 51}), json!({"query": 7})] {
            let error = harness().error("tool_search", arguments).await;
            assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        }
    }
}
