use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(choices("up", "down", "up"))]
    order: String,
) -> String {
    order
}

fn main() {}
