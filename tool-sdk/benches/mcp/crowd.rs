//! The server of the SDK with many tools, of which only the list matters.

use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::mcp::Server;
use tool_sdk::provider::{self, Dialect};
use tool_sdk::{Context, Definition, DynamicTool, Pipeline, Registry, Session, ToolName};

/// How many tools there are.
pub(crate) const TOOLS: usize = 1000;

pub(crate) fn server() -> Result<Server, Box<dyn Error>> {
    Ok(Server::new(pipeline()?, Session::default()))
}

/// What the server tells of its tools.
pub(crate) fn list() -> Result<Arc<str>, Box<dyn Error>> {
    Ok(provider::encode_listing(&pipeline()?.toolset().view(), Dialect::Mcp))
}

fn pipeline() -> Result<Pipeline, Box<dyn Error>> {
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
    Ok(Pipeline::new(registry.build()?))
}
