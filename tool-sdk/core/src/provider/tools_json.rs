//! Complete definitions, from which tools can be loaded again.

use serde_json::{Map, Value, json};

use crate::tool::Definition;

/// Encodes everything in a definition except its source location, which would change with every
/// edit above it.
pub(super) fn encode_tool(definition: &Definition) -> Value {
    let mut tool = match serde_json::to_value(definition) {
        Ok(Value::Object(tool)) => tool,
        // A definition is plain data and always serializes.
        _ => Map::new(),
    };
    tool.shift_remove("place");
    for part in ["display", "flags"] {
        if tool.get(part).and_then(Value::as_object).is_some_and(Map::is_empty) {
            tool.shift_remove(part);
        }
    }
    Value::Object(tool)
}

/// Encodes tools in the function form of an older `tools.json`: a list of OpenAI functions, each
/// with the members `agent_scope` and `category`. [`ToolsFile`](crate::ToolsFile) reads the form.
///
/// The form has no risk, permission, limits or aliases, so a tool that is read back asks like any
/// tool that may execute.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Definition, Schema, ToolName, provider};
///
/// let schema = Schema::from_value(serde_json::json!({ "type": "object" }))?;
/// let mut tool = Definition::new(ToolName::new("search_pages")?, "Search.", schema);
/// tool.scopes = vec!["oracle".into()];
/// let legacy = provider::encode_legacy_tools([&tool]);
///
/// assert_eq!(legacy[0]["function"]["name"], "search_pages");
/// assert_eq!(legacy[0]["agent_scope"][0], "oracle");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn encode_legacy_tools<'a>(definitions: impl IntoIterator<Item = &'a Definition>) -> Value {
    let encode = |tool: &Definition| {
        let mut entry = json!({
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters.to_value(),
            },
        });
        if !tool.scopes.is_empty() {
            entry["agent_scope"] = json!(tool.scopes);
        }
        if let Some(category) = &tool.category {
            entry["category"] = json!(category);
        }
        entry
    };
    definitions.into_iter().map(encode).collect()
}
