use tool_sdk::tool;

fn text() -> &'static str {
    "Read a file."
}

#[tool(read, description = text())]
fn read_file() {}

fn main() {}
