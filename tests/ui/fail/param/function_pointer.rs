use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// How.
    by: fn(&str) -> usize,
) -> String {
    by("").to_string()
}

fn main() {}
