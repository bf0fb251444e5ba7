use tool_sdk::tool;

const DEFAULT: u32 = 60;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(default = DEFAULT, range = 1..=5)]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
