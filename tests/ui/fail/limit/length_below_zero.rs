use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[arg(length = -1..=5)]
    lines: String,
) -> String {
    lines
}

fn main() {}
