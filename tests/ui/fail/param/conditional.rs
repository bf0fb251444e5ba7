use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    #[cfg(unix)]
    lines: String,
) -> String {
    lines
}

fn main() {}
