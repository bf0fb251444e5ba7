use tool_sdk::tool;

const SUMMARY: &str = "Reading {path}";

/// Read a file.
#[tool(read, display(summary = SUMMARY))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
