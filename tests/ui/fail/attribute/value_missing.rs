use tool_sdk::tool;

/// Read a file.
#[tool(read, timeout)]
fn read_file() {}

fn main() {}
