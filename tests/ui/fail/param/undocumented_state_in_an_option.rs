use tool_sdk::{State, tool};

/// Count.
#[tool(read)]
fn count(counter: Option<State<u32>>) -> String {
    format!("{}", counter.is_some())
}

fn main() {}
