use tool_sdk::{tool, tools};

#[tool(read)]
fn read_file() {}

fn main() {
    let _ = tools![read_file];
}
