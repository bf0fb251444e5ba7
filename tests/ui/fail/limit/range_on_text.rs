use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[arg(range = 1..=5)]
    lines: String,
) -> String {
    lines
}

fn main() {}
