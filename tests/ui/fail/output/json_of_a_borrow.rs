use tool_sdk::{Json, tool};

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    path: &str,
) -> Json<Vec<&str>> {
    Json(vec![path])
}

fn main() {}
