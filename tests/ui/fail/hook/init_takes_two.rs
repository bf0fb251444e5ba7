use tool_sdk::tool;

/// Read a file.
#[tool(read, init = |session, cx| tool_sdk::Refinement::default())]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
