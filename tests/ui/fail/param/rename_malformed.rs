use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[arg(rename = "the lines")]
    lines: String,
) -> String {
    lines
}

fn main() {}
