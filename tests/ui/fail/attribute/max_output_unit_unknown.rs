use tool_sdk::tool;

/// Read a file.
#[tool(read, max_output = "64 pages")]
fn read_file() {}

fn main() {}
