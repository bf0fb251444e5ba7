use tool_sdk::tool;

/// Read a file.
#[tool(read)]
#[arg(hidden)]
fn read_file() {}

fn main() {}
