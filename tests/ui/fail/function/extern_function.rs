use tool_sdk::tool;

/// Read a file.
#[tool(read)]
extern "C" fn read_file() {}

fn main() {}
