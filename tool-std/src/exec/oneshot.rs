//! Runs a command to its end, for tools without background sessions.

use std::time::{Duration, Instant};

use tool_sdk::process::{Processes, Spawn};
use tool_sdk::{Context, Output, ToolError};

use super::output::{oneshot_output, start_error, stream_output, with_record};
use super::sandbox::SandboxReport;

/// Ends the process when the call ends, also by cancellation.
struct SessionGuard<'a>(&'a Processes, u32);

impl Drop for SessionGuard<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

/// Runs `spawn` for at most `limit` milliseconds, once a process slot is free.
pub(super) async fn run_to_end(
    spawn: Spawn,
    limit: u64,
    cx: &Context,
) -> Result<Output, ToolError> {
    let record = spawn.record();
    let processes = Processes::of(cx.session());
    let _turn = processes.turn().await;
    let started = Instant::now();
    let process = processes.start(&spawn.until(cx.closed())).map_err(start_error)?;
    let _forgetting = SessionGuard(&processes, process.id());
    let ended =
        tokio::time::timeout(Duration::from_millis(limit), process.ended(stream_output(cx, None)));
    let timed_out = ended.await.is_err().then_some(limit);
    if timed_out.is_some() {
        process.kill().await;
    }
    let look = process.look(Duration::ZERO, |_| {}).await;
    let confinement = SandboxReport::from_process(&process, cx).await;
    let output = oneshot_output(process.title(), started.elapsed(), &look, timed_out, &confinement);
    Ok(with_record(output, record))
}
