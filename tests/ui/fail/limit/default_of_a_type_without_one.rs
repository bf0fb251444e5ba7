use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_sdk::tool;

#[derive(Serialize, Deserialize, JsonSchema)]
enum Order {
    Name,
    Size,
}

/// List files.
#[tool(read)]
fn list_files(
    /// What comes first.
    #[arg(default)]
    order: Order,
) -> String {
    matches!(order, Order::Name).to_string()
}

fn main() {}
