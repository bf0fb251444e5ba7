use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: String,
    /// The order.
    #[arg(rename = "lines")]
    order: String,
) -> String {
    lines + &order
}

fn main() {}
