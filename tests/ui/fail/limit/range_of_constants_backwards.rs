use tool_sdk::tool;

const MIN: u32 = 10;
const MAX: u32 = 1;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(range = MIN..=MAX)]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
