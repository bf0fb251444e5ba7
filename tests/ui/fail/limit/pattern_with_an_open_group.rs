use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[arg(pattern = "^(a|b$")]
    lines: String,
) -> String {
    lines
}

fn main() {}
