use std::cell::Cell;

use tool_sdk::{State, tool};

/// Count calls.
#[tool]
async fn count(calls: State<Cell<u32>>) -> String {
    calls.get().to_string()
}

fn main() {}
