//! The standard tools as a program.

use std::process::ExitCode;

tool_sdk::link!(tool_std);

fn main() -> ExitCode {
    tool_sdk::cli::main()
}
