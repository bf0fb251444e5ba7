use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[arg(length = 5..=1)]
    lines: String,
) -> String {
    lines
}

fn main() {}
