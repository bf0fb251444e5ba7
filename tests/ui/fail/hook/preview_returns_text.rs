use tool_sdk::{Context, tool};

fn preview(args: &WriteFileArgs, _: &Context) -> String {
    args.path.clone()
}

/// Write a file.
#[tool(write, display(preview = preview))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
