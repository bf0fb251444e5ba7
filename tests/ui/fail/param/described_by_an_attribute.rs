use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(#[description("The path.")] path: String) -> String {
    path
}

fn main() {}
