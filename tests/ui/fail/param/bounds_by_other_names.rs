use tool_sdk::tool;

/// Roll dice.
#[tool(read)]
fn roll(
    /// How many dice.
    #[arg(min = 1, max = 10)]
    dice: u32,
    /// What to call the roll.
    #[arg(max_length = 40)]
    name: &str,
    /// The colour of the dice.
    #[arg(enum("red", "blue"))]
    colour: &str,
) -> String {
    format!("{dice} {name} {colour}")
}

fn main() {}
