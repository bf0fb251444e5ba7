use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    _lines: String,
    /// The lines again.
    _lines: String,
) -> String {
    _lines
}

fn main() {}
