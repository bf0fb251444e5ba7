use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(choices(1, 2))]
    order: String,
) -> String {
    order
}

fn main() {}
