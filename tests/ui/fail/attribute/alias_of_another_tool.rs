use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file() {}

/// Open a file.
#[tool(read, aliases("open", "Read_File"))]
fn open_file() {}

fn main() {}
