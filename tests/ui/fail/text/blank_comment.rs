use tool_sdk::tool;

///
#[tool(read)]
fn read_file() {}

fn main() {}
