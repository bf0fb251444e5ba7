use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(default = "sideways", length = 1..=5)]
    order: &str,
) -> String {
    order.to_owned()
}

fn main() {}
