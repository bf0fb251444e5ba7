use tool_sdk::{tool, tools};

/// Read a file.
#[tool(read, schema = "schema_of_another_signature.json")]
fn read_file(
    /// The path.
    path: String,
    /// How many lines.
    #[arg(default = 10, range = 1..=100)]
    lines: u32,
    /// The order of the lines.
    #[arg(choices("up", "down"))]
    order: Option<String>,
    /// Lower case only.
    #[arg(pattern = "^[a-z]+$", length = ..=9)]
    word: &str,
    /// New here.
    fresh: bool,
) -> String {
    format!("{path} {lines} {order:?} {word} {fresh}")
}

#[test]
fn it_is_used() {
    let _ = tools![read_file];
}
