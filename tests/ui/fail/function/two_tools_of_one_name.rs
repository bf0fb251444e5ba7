use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file() {}

/// Read a file.
#[tool(read)]
fn read_file() {}

fn main() {}
