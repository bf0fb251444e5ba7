use tool_sdk::tool;

struct ReadFileArgs;

/// Read a file.
#[tool(raed, display(summary = "Reading {path}"))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    let _ = ReadFileArgs;
    path
}

fn main() {}
