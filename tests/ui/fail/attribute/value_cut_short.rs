use tool_sdk::tool;

/// Read a file.
#[tool(read, timeout = , hidden)]
fn read_file() {}

fn main() {}
