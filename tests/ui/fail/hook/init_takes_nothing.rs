use tool_sdk::{Refinement, tool};

fn refine() -> Refinement {
    Refinement::default()
}

/// Write a file.
#[tool(write, init = refine)]
fn write_file() {}

fn main() {}
