use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: Vec<&str>,
) -> String {
    lines.join("\n")
}

fn main() {}
