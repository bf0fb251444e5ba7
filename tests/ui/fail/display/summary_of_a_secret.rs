use tool_sdk::tool;

/// Log in.
#[tool(display(summary = "With {password}"))]
fn log_in(
    /// The password.
    #[arg(sensitive)]
    password: String,
) -> String {
    password
}

fn main() {}
