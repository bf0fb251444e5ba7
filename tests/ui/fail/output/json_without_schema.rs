use serde::Serialize;
use tool_sdk::{Json, ToolError, tool};

#[derive(Serialize)]
struct Lines {
    lines: Vec<String>,
}

/// Read a file.
#[tool(read)]
async fn read_file() -> Result<Json<Lines>, ToolError> {
    Ok(Json(Lines { lines: Vec::new() }))
}

fn main() {}
