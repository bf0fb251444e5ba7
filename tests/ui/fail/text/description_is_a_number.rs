use tool_sdk::tool;

#[tool(read, description = 5)]
fn read_file() {}

fn main() {}
