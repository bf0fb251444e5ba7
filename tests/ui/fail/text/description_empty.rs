use tool_sdk::tool;

#[tool(read, description = " ")]
fn read_file() {}

fn main() {}
