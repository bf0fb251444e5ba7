use tool_sdk::tool;

/// Read a file.
#[tool(read, scopes(oracle))]
fn read_file() {}

fn main() {}
