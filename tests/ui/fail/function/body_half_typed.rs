use tool_sdk::tool;

/// Read a file.
#[tool(read)]
async fn read_file(
    /// The path.
    path: String,
) -> String {
    let text = path.
    text
}

fn main() {}
