use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: &[String],
) -> String {
    lines.join("\n")
}

fn main() {}
