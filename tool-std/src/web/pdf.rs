//! The text of a PDF, by `pdftotext` where it is installed.
//!
//! The file comes from the web, so the program runs with little memory and time, and in a sandbox
//! without a network where the system has one.

use std::time::Duration;

use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
use tool_sdk::process::{ChildEnv, Command as ChildCommand, ExitOutcome, ResourceLimits, run};

const PROGRAM: &str = "pdftotext";
const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_MEMORY: u64 = 1 << 30;

/// The most bytes of text.
const MAX_TEXT: usize = 8 << 20;

/// Returns the text, or `None` if the program is not installed or finds none.
pub(super) async fn extract_text(pdf: &[u8]) -> Option<String> {
    let program = ChildEnv::from_host().find_program(PROGRAM)?;
    let command = ChildCommand::new(program, ["-q", "-enc", "UTF-8", "-", "-"])
        .stdin(pdf)
        .timeout(TIMEOUT)
        .output_limit(MAX_TEXT)
        .limits(ResourceLimits::default().memory_bytes(MAX_MEMORY))
        .sandbox(SandboxPolicy::new(SandboxMode::BestEffort, SandboxLevel::ReadOnly));
    let output = run(command).await.ok()?;
    let text = output.stdout.to_text();
    let is_found = output.exit == ExitOutcome::Code(0) && !text.trim().is_empty();
    // Pages end with a form feed.
    is_found.then(|| text.replace('\u{c}', "\n").trim_end().to_owned())
}
