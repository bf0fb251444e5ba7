use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read)]
fn read_file(path: String) -> String {
    path
}

fn main() {
    let _ = tools![read_file];
}
