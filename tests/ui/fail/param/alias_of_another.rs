use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: String,
    /// The order.
    #[arg(alias("by", "lines"))]
    order: String,
) -> String {
    lines + &order
}

fn main() {}
