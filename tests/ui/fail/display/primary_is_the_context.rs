use tool_sdk::{Context, tool};

/// Read a file.
#[tool(read, display(primary = cx))]
fn read_file(
    /// The path.
    path: String,
    cx: &Context,
) -> String {
    let _ = cx;
    path
}

fn main() {}
