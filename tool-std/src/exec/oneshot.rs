//! Runs a command to its end, for tools without background sessions.

use std::time::{Duration, Instant};

use tool_sdk::process::{BackgroundCommand, BackgroundProcesses};
use tool_sdk::{Context, Output, ToolError};

use super::output::{oneshot_output, start_error, stream_output, with_record};
use super::sandbox::{SandboxReport, start_policy};

/// Returns the processes of the session. They end when the pipeline is closed, which waits for
/// them.
pub(super) fn session_processes(cx: &Context) -> BackgroundProcesses {
    let processes = cx.session().extension::<BackgroundProcesses>();
    let weak = processes.downgrade();
    cx.on_close("background processes", async move || {
        if let Some(processes) = weak.upgrade() {
            processes.shut_down().await;
        }
    });
    processes
}

/// Ends the process when the call ends, also by cancellation.
struct SessionGuard<'a>(&'a BackgroundProcesses, u32);

impl Drop for SessionGuard<'_> {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}

/// Runs `spawn` in the sandbox for at most `limit` milliseconds, once a process slot is free.
pub(super) async fn run_to_end(
    spawn: BackgroundCommand,
    limit: u64,
    cx: &Context,
) -> Result<Output, ToolError> {
    let record = spawn.to_record();
    let processes = session_processes(cx);
    let _turn = processes.acquire_slot().await;
    let spawn = spawn.cancel_on(cx.shutdown_token()).sandbox(start_policy(cx).await?);
    let started = Instant::now();
    let process = processes.spawn(&spawn).map_err(start_error)?;
    let _forgetting = SessionGuard(&processes, process.id());
    let ended = tokio::time::timeout(
        Duration::from_millis(limit),
        process.wait_for_exit(stream_output(cx, None)),
    );
    let timed_out = ended.await.is_err().then_some(limit);
    if timed_out.is_some() {
        process.kill().await;
    }
    let snapshot = process.read_output(Duration::ZERO, |_| {}).await;
    let sandbox = SandboxReport::from_process(&process, cx).await;
    let output = oneshot_output(process.title(), started.elapsed(), &snapshot, timed_out, &sandbox);
    Ok(with_record(output, record))
}
