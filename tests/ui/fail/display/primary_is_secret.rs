use tool_sdk::tool;

/// Log in.
#[tool(display(primary = password))]
fn log_in(
    /// The password.
    #[arg(sensitive)]
    password: String,
) -> String {
    password
}

fn main() {}
