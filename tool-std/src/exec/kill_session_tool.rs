//! `kill_session`: ends a background command.

use std::time::{Duration, Instant};

use tool_sdk::process::BackgroundProcesses;
use tool_sdk::{Context, Output, ToolError, tool};

use super::output::SessionOutput;
use super::sandbox::SandboxReport;
use super::write_stdin_tool::unknown_session;

/// End a background command with all processes that it started, and return the rest of its
/// output.
#[tool(
    execute,
    category = "shell",
    permission = "exec_command",
    display(name = "End", primary = session_id, show(session_id), summary = "Ending session {session_id}"),
    approval(required = is_asked),
    parallel = by(session_id),
    timeout = "30s",
    truncate = middle
)]
pub async fn kill_session(
    /// The session ID of the command.
    session_id: u32,
    cx: &Context,
) -> Result<Output, ToolError> {
    let processes = cx.session().extension::<BackgroundProcesses>();
    let process = processes.remove(session_id).ok_or_else(|| unknown_session(session_id))?;
    let started = Instant::now();
    process.kill().await;
    let snapshot = process.read_output(Duration::ZERO, |_| {}).await;
    let chunk = SessionOutput {
        title: process.title(),
        session: session_id,
        wall: started.elapsed(),
        snapshot: &snapshot,
        is_text_found: None,
        sandbox: SandboxReport::from_process(&process, cx).await,
        max_tokens: usize::MAX,
    };
    Ok(chunk.to_output())
}

/// The conversation that started a session may end it.
fn is_asked(_: &KillSessionArgs, _: &Context) -> bool {
    false
}
