use tool_sdk::tool;

/// Read a file.
#[tool(read, colour = "red")]
fn read_file() {}

fn main() {}
