use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(default = 0, range = 1..=5)]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
