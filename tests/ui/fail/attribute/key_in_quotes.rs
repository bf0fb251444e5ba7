use tool_sdk::tool;

/// Read a file.
#[tool("read", hidden)]
fn read_file() {}

fn main() {}
