use tool_sdk::{Context, Resource, tool};

struct Other;

fn subjects(_: &Other, _: &Context) -> Vec<Resource> {
    Vec::new()
}

/// Write a file.
#[tool(write, approval(resources = subjects))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
