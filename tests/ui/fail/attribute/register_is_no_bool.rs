use tool_sdk::tool;

/// Read a file.
#[tool(read, register = "no")]
fn read_file() {}

fn main() {}
