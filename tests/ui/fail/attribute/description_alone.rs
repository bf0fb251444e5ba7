use tool_sdk::tool;

#[tool("Reads a file.")]
fn read_file() {}

fn main() {}
