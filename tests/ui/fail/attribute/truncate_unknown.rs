use tool_sdk::tool;

/// Read a file.
#[tool(read, truncate = end)]
fn read_file() {}

fn main() {}
