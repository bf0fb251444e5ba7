use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(pattern = "^[0-9]$")]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
