use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read)]
fn read_file<T: AsRef<str>>(
    /// The path.
    path: T,
) -> String {
    path.as_ref().to_owned()
}

fn main() {
    let _ = tools![read_file];
}
