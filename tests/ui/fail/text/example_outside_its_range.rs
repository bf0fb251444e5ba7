use tool_sdk::tool;

/// Read a file.
#[tool(read, example = r#"{"count": 99}"#)]
fn read_file(
    /// How many.
    #[arg(range = 1..=5)]
    count: u32,
) -> String {
    count.to_string()
}

fn main() {}
