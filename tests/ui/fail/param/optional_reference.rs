use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: Option<&String>,
) -> String {
    lines.cloned().unwrap_or_default()
}

fn main() {}
