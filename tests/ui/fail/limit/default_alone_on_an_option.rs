use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The first line.
    #[arg(default)]
    offset: Option<u32>,
) -> String {
    format!("{offset:?}")
}

fn main() {}
