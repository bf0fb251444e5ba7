use tool_sdk::tool;

/// Read a file.
#[tool(read, title = "Read", title = "Read a file")]
fn read_file() {}

fn main() {}
