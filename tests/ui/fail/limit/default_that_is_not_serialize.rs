use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::tool;

#[derive(Deserialize, JsonSchema)]
enum Order {
    Up,
    Down,
}

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(default = Order::Up)]
    order: Order,
) -> &'static str {
    match order {
        Order::Up => "up",
        Order::Down => "down",
    }
}

fn main() {}
