use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    #[serde(rename = "file")]
    path: String,
) -> String {
    path
}

fn main() {}
