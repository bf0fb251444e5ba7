use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read)]
unsafe fn read_file() {}

fn main() {
    let _ = tools![read_file];
}
