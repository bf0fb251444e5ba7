use tool_sdk::{Context, Subject, tool};

struct Other;

fn subjects(_: &Other, _: &Context) -> Vec<Subject> {
    Vec::new()
}

/// Write a file.
#[tool(write, approval(subjects = subjects))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
