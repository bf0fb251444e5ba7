use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(range = 1..=max())]
    seconds: u32,
) -> String {
    seconds.to_string()
}

const fn max() -> u32 {
    5
}

fn main() {
    max();
}
