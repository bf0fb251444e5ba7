use tool_sdk::tool;

/// Read a file.
#[tool(read, display(summary = "Reading\n{path}"))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
