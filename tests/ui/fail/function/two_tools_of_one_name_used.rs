use tool_sdk::{Registry, tool, tools};

/// Read a file.
#[tool(read, approval(dangerous = |args| args.path.is_empty()))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

/// Read a file.
#[tool(read, approval(dangerous = |args| args.path.is_empty()))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {
    let _ = Registry::builder().add(tools![read_file]);
    read_file(String::new());
}
