use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: &'static str,
) -> String {
    lines.to_owned()
}

fn main() {}
