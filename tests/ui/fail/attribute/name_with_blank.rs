use tool_sdk::tool;

/// Read a file.
#[tool(read, name = "read file")]
fn read_file() {}

fn main() {}
