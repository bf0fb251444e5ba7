use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: &mut Vec<String>,
) {
    lines.sort();
}

fn main() {}
