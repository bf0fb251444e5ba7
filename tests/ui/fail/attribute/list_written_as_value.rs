use tool_sdk::tool;

/// Read a file.
#[tool(read, aliases = "open")]
fn read_file() {}

fn main() {}
