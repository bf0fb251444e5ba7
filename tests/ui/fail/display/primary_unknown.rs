use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read, display(primary = paht))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {
    let _ = tools![read_file];
}
