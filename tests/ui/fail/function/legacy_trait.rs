// F10: who writes a tool of the older kind is told of the newer one.
#![deny(deprecated)]

use serde_json::Value;
use tool_sdk::ToolError;

struct Greet;

impl tool_sdk::LegacyTool for Greet {
    fn name(&self) -> &str {
        "greet"
    }

    fn description(&self) -> &str {
        "Greets a person."
    }

    fn parameters(&self) -> Value {
        serde_json::json!({ "type": "object" })
    }

    async fn execute(&self, _: Value) -> Result<String, ToolError> {
        Ok(String::new())
    }
}

fn main() {}
