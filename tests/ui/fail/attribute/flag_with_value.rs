use tool_sdk::tool;

/// Read a file.
#[tool(read = true)]
fn read_file() {}

fn main() {}
