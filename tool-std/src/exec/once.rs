//! Running a command to its end, for tools that do not keep it.

use std::time::{Duration, Instant};

use tool_sdk::process::{Processes, Spawn};
use tool_sdk::{Context, Output, ToolError};

use super::confined::Confinement;
use super::report::{not_started, once, recorded, showing};

/// Ends the process with the call, however the call ends.
struct Forgetting<'a>(&'a Processes, u32);

impl Drop for Forgetting<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

/// Runs `spawn` for at most `limit` milliseconds, once there is room for it.
pub(super) async fn run(spawn: Spawn, limit: u64, cx: &Context) -> Result<Output, ToolError> {
    let record = spawn.record();
    let processes = Processes::of(cx.session());
    let _turn = processes.turn().await;
    let started = Instant::now();
    let process = processes.start(&spawn.until(cx.closed())).map_err(not_started)?;
    let _forgetting = Forgetting(&processes, process.id());
    let ended =
        tokio::time::timeout(Duration::from_millis(limit), process.ended(showing(cx, None)));
    let timed_out = ended.await.is_err().then_some(limit);
    if timed_out.is_some() {
        process.kill().await;
    }
    let look = process.look(Duration::ZERO, |_| {}).await;
    let confinement = Confinement::of(&process, cx).await;
    let output = once(process.title(), started.elapsed(), &look, timed_out, &confinement);
    Ok(recorded(output, record))
}
