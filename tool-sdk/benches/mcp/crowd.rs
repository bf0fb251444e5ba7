//! The server of the SDK with many tools, of which only the list matters.

use std::error::Error;

use serde_json::{Value, json};
use tool_sdk::mcp::Server;
use tool_sdk::{Context, Definition, DynamicTool, Pipeline, Registry, Session, ToolName};

/// How many tools there are.
pub(crate) const TOOLS: usize = 1000;

pub(crate) fn server() -> Result<Server, Box<dyn Error>> {
    let parameters = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
        "required": ["a", "b"],
    });
    let mut registry = Registry::builder();
    for nth in 0..TOOLS {
        let name = ToolName::new(format!("add_{nth:04}"))?;
        let schema = serde_json::from_value(parameters.clone())?;
        let definition = Definition::new(name, "Add two numbers.", schema);
        registry = registry.add(DynamicTool::new(definition, |_: Value, _: Context| async {}));
    }
    Ok(Server::new(Pipeline::new(registry.build()?), Session::default()))
}
