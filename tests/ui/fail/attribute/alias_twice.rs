use tool_sdk::tool;

/// Read a file.
#[tool(read, aliases("open", "cat", "OPEN"))]
fn read_file() {}

fn main() {}
