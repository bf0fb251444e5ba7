use tool_sdk::tool;

/// Read a file.
#[tool(read, timeout = "10")]
fn read_file() {}

fn main() {}
