use tool_sdk::tool;

#[allow(non_camel_case_types)]
struct read_file {
    path: String,
}

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
