use tool_sdk::tool;

/// Wait.
#[tool]
fn wait(
    /// How long.
    #[arg(range = 0.0..1.0)]
    seconds: f64,
) -> String {
    seconds.to_string()
}

fn main() {}
