use tool_sdk::{State, tool};

trait Db: Send + Sync {}

/// Count.
#[tool(read)]
fn count(db: State<dyn Db>) -> String {
    format!("{:p}", db.0)
}

fn main() {}
