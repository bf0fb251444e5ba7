use tool_sdk::tool;

/// Read a file.
#[tool(read, aliases("open", "Read_File"))]
fn read_file() {}

fn main() {}
