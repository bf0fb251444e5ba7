use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_sdk::tool;

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Up,
    Down,
}

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(default = "up")]
    order: Order,
) -> &'static str {
    match order {
        Order::Up => "up",
        Order::Down => "down",
    }
}

fn main() {}
