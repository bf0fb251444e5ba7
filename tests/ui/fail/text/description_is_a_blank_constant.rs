use tool_sdk::tool;

const TEXT: &str = "  ";

#[tool(read, description = TEXT)]
fn read_file() {}

fn main() {}
