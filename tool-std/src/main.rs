//! The standard tools as a program.

use std::process::ExitCode;

use tool_sdk::cli::App;

tool_sdk::link!(tool_std);

fn main() -> ExitCode {
    App::linked()
        .version(env!("CARGO_PKG_VERSION"))
        .with_toolset(|tools| {
            tools
                .with_profiles(tool_std::model_profiles())
                .with_variants(tool_std::exec::variants())
        })
        .main()
}
