use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The first line.
    #[arg(default, range = 1..)]
    offset: u32,
) -> String {
    offset.to_string()
}

fn main() {}
