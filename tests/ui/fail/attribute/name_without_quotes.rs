use tool_sdk::tool;

/// Read a file.
#[tool(read, name = reader)]
fn read_file() {}

fn main() {}
