use tool_sdk::tool;

/// Read a file.
#[tool(read, aliases())]
fn read_file() {}

fn main() {}
