use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read)]
async fn read_file(
    /// The path.
    path,
    /// How many lines.
    lines: u32,
) -> String {
    String::new()
}

fn main() {
    let _ = tools![read_file];
}
