use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(default = 300)]
    seconds: u8,
) -> String {
    seconds.to_string()
}

fn main() {}
