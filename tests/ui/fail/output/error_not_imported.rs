use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read)]
async fn read_file(
    /// The path.
    path: String,
) -> Result<String, ToolError> {
    Ok(path)
}

fn main() {
    let _ = tools![read_file];
}
