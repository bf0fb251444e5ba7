use tool_sdk::toolset;

/// Read a file.
#[toolset]
fn read_file() {}

fn main() {}
