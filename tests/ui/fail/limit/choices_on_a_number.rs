use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(choices("1", "2"))]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
