use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(default = String::new())]
    seconds: u32,
) -> String {
    seconds.to_string()
}

fn main() {}
