use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[arg(hidden)]
    lines: String,
) -> String {
    lines
}

fn main() {}
