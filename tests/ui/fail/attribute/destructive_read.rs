use tool_sdk::tool;

/// Read a file.
#[tool(read, destructive)]
fn read_file() {}

fn main() {}
