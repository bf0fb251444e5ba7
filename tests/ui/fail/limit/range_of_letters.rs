use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// Up to this letter.
    #[arg(range = ..='z')]
    letter: char,
) -> String {
    letter.into()
}

fn main() {}
