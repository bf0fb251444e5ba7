use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[arg(default = "a")]
    #[arg(default = "b")]
    lines: String,
) -> String {
    lines
}

fn main() {}
