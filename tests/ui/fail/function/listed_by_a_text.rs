use tool_sdk::{tool, tools};

/// Say hello.
#[tool(read)]
fn hello() -> &'static str {
    "hello"
}

fn main() {
    let _ = tools!["hello"];
}
