use tool_sdk::tool;

/// Stop the program.
#[tool]
fn stop() -> ! {
    std::process::exit(1)
}

fn main() {}
