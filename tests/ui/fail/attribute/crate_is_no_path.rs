use tool_sdk::tool;

/// Read a file.
#[tool(read, crate = "tool_sdk")]
fn read_file() {}

fn main() {}
