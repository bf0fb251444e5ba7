use tool_sdk::{tool, tools};

struct Lines(Vec<String>);

/// Read a file.
#[tool(read)]
async fn read_file() -> Lines {
    Lines(Vec::new())
}

fn main() {
    let _ = tools![read_file];
    let _ = Lines(Vec::new()).0;
}
