//! Runs calls to their end, and ends them when the person at the terminal wants that.

use std::io::Write;
use std::panic::resume_unwind;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::exit::{self, FAILED, Failure, Result};
use super::signals;
use super::watch::Watch;
use crate::error::ToolError;

/// How long a call that was aborted may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs `work` on a runtime of its own, and then what is left to do `after` it; `stop` is what
/// ends it.
pub(super) fn run<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    after: impl Future<Output = ()>,
    stop: &CancellationToken,
    watch: Watch,
    stderr: &mut dyn Write,
) -> Result<T> {
    let ended = block_on(to_the_end(work, after, stop, watch, stderr))?;
    ended.ok_or_else(|| {
        let error = ToolError::aborted("the call was aborted and did not end in time")
            .hint("what it was about to change may be changed; look at what is there");
        Failure::new(exit::code(error.kind()), error)
    })
}

/// Waits for `future` on a runtime of its own.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T> {
    block_on_runtime(Builder::new_multi_thread(), future)
}

/// Waits for `future` on this thread alone: for one peer, waking others only takes time.
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have peers"))]
pub(super) fn block_on_here<T>(future: impl Future<Output = T>) -> Result<T> {
    block_on_runtime(Builder::new_current_thread(), future)
}

fn block_on_runtime<T>(mut builder: Builder, future: impl Future<Output = T>) -> Result<T> {
    let runtime = builder.enable_all().build().map_err(|error| {
        let error = ToolError::internal(format_args!("cannot start a runtime: {error}"));
        Failure::new(FAILED, error)
    })?;
    let value = runtime.block_on(future);
    // Work that was told to stop and does not listen must not keep the program.
    runtime.shutdown_background();
    Ok(value)
}

/// Runs the work on a thread of its own, so that a call that blocks is heard and can be
/// left.
///
/// Ctrl-C and its like abort the calls. When they do not end soon, or with a second one,
/// nobody waits for them any more, and there is no outcome.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    after: impl Future<Output = ()>,
    stop: &CancellationToken,
    mut watch: Watch,
    stderr: &mut dyn Write,
) -> Option<T> {
    let mut interrupt = pin!(interrupt(Duration::MAX));
    let mut running = tokio::spawn(work);
    let ended = loop {
        tokio::select! {
            biased;
            () = &mut interrupt => {
                if stop.is_cancelled() {
                    return None;
                }
                stop.cancel();
                interrupt.set(self::interrupt(PATIENCE));
            }
            Some(event) = watch.events.recv() => watch.view.tell(&event, stderr),
            ended = &mut running => break ended,
        }
    };
    watch.finish(stderr);
    tokio::select! {
        biased;
        () = interrupt => {}
        () = after => {}
    }
    // Nothing aborts the task, so this is a defect of the pipeline and no tool's panic.
    Some(ended.unwrap_or_else(|failure| resume_unwind(failure.into_panic())))
}

/// Waits for Ctrl-C or its like, or until `patience` is over.
async fn interrupt(patience: Duration) {
    let told = async {
        // Where it cannot be caught it ends the process, as it always did.
        if signals::end().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let _ = tokio::time::timeout(patience, told).await;
}
