use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file() -> impl Into<String> {
    "text"
}

fn main() {}
