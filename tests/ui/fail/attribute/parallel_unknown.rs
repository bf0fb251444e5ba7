use tool_sdk::tool;

/// Read a file.
#[tool(read, parallel = always)]
fn read_file() {}

fn main() {}
