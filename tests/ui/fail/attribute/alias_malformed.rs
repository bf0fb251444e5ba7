use tool_sdk::tool;

/// Read a file.
#[tool(read, aliases("2nd"))]
fn read_file() {}

fn main() {}
