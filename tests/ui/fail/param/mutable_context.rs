use tool_sdk::{Context, tool};

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    path: String,
    _cx: &mut Context,
) -> String {
    path
}

fn main() {}
