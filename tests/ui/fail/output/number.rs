use tool_sdk::tool;

/// Count lines.
#[tool(read)]
fn count() -> usize {
    5
}

fn main() {}
