use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(range = 10..=1)]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
