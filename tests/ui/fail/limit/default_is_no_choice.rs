use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The order.
    #[arg(default = "sideways", choices("up", "down"))]
    order: &str,
) -> String {
    order.to_owned()
}

fn main() {}
