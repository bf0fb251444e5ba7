use tool_sdk::tool;

/// Read a file.
#[tool(read, write)]
fn read_file() {}

fn main() {}
