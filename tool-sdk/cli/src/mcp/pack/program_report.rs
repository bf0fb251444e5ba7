//! What a program says about itself: its version and its tools.
//!
//! Another program is run twice, with `--version` and with `list --json`, on its own tools only: its
//! configuration, which could name servers of the user, is not read.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde::Deserialize;
use tool_sdk_core::ToolError;

use crate::App;
use crate::exit::{CommandError, FAILED, Result};

/// A configuration file without content.
const EMPTY_FILE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// A tool, as `list --json` describes it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ListedTool {
    pub(super) name: String,
    pub(super) description: String,
}

/// What a program says about itself.
pub(super) struct ProgramReport {
    pub(super) version: Option<String>,
    pub(super) tools: Vec<ListedTool>,
}

impl ProgramReport {
    /// Describes this program.
    pub(super) fn of_app(app: &App) -> Self {
        let view = app.base_toolset().view();
        let tools = view.definitions().map(|tool| ListedTool {
            name: tool.name.to_string(),
            description: tool.description.to_string(),
        });
        Self { version: app.version.map(str::to_owned), tools: tools.collect() }
    }

    /// Runs another program, and returns what that program prints about itself.
    ///
    /// Fails if the program does not run, or has another command line.
    pub(super) fn of_program(path: &Path) -> Result<Self> {
        let version = run_program(path, &["--version"]).ok().and_then(|text| {
            let last = text.split_whitespace().last()?;
            Some(last.to_owned())
        });
        let listed = run_program(path, &["--config", EMPTY_FILE, "list", "--json"])?;
        let tools = serde_json::from_str(&listed).map_err(|error| {
            failed(path, format_args!("its command `list --json` prints something else: {error}"))
                .hint("a program that can be packed calls `tool_sdk::cli::main`")
        })?;
        Ok(Self { version, tools })
    }
}

/// Runs the program, and returns its standard output.
fn run_program(path: &Path, args: &[&str]) -> Result<String> {
    let ran = Command::new(path).args(args).stdin(Stdio::null()).output();
    let Output { status, stdout, stderr } =
        ran.map_err(|error| failed(path, format_args!("it does not start: {error}")))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        let said = said.lines().next().unwrap_or_default().to_owned();
        let words = format_args!("`{}` ended with {status}: {said}", args.join(" "));
        return Err(
            failed(path, words).hint("a program that can be packed calls `tool_sdk::cli::main`")
        );
    }
    String::from_utf8(stdout).map_err(|_| failed(path, "its output is not UTF-8"))
}

fn failed(path: &Path, words: impl std::fmt::Display) -> CommandError {
    let words = format_args!("cannot pack `{}`: {words}", path.display());
    CommandError::new(FAILED, ToolError::failed(words))
}
