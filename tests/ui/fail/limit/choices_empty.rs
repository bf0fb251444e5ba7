use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(choices())]
    order: String,
) -> String {
    order
}

fn main() {}
