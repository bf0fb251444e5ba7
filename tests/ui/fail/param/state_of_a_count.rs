use std::rc::Rc;

use tool_sdk::{State, tool};

/// Count calls.
#[tool]
fn count(calls: State<Rc<u32>>) -> String {
    calls.to_string()
}

fn main() {}
