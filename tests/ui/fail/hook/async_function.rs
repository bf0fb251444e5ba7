use tool_sdk::{Context, tool};

async fn ask(_: &WriteFileArgs, _: &Context) -> bool {
    true
}

/// Write a file.
#[tool(write, approval(required = ask))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
