use tool_sdk::{Context, tool};

fn ask(args: &WriteFileArgs, _: &Context) -> String {
    args.path.clone()
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
