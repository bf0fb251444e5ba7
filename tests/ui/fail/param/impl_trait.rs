use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: impl Into<String>,
) -> String {
    lines.into()
}

fn main() {}
