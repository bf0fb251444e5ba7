use tool_sdk::tool;

/// Read a file.
#[tool(read, example = r#"{"count": 1, "count": 2}"#)]
fn read_file(
    /// How many.
    count: u32,
) -> String {
    count.to_string()
}

fn main() {}
