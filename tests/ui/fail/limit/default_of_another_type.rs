use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(default = "long")]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
