use tool_sdk::tool;

#[tool(read, desc = "Read a file.")]
fn read_file(
    #[arg(desc = "The path.")]
    path: String,
) -> String {
    path
}

fn main() {}
