use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(default = "Up", pattern = "^[a-z]+$")]
    order: String,
) -> String {
    order
}

fn main() {}
