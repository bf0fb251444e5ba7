use tool_sdk::{ToolError, tool};

/// Count lines.
#[tool(read)]
async fn count() -> Result<usize, ToolError> {
    Ok(5)
}

fn main() {}
