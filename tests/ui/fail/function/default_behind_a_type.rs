use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read)]
async fn read_file(
    /// How many lines.
    lines: u32 = 10,
) -> String {
    lines.to_string()
}

fn main() {
    let _ = tools![read_file];
}
