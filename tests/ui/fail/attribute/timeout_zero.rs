use tool_sdk::tool;

/// Read a file.
#[tool(read, timeout = "0s")]
fn read_file() {}

fn main() {}
