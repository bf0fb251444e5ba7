use tool_sdk::tool;

/// Read a file.
#[tool(read, example = r#"{"offset": 1}"#)]
fn read_file(
    /// The path.
    path: String,
    /// The first line.
    offset: Option<u32>,
) -> String {
    format!("{path} {offset:?}")
}

fn main() {}
