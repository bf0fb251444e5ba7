use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file() -> Option<String> {
    None
}

fn main() {}
