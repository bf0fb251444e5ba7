//! Runs calls on an async runtime, prints their events, and aborts them on Ctrl-C.

use std::io::Write;
use std::panic::resume_unwind;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::ToolError;

use super::event_printer::EventPrinter;
use super::exit::{self, CommandError, FAILED, Result};
use super::signals;

/// How long an aborted call may take to end.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs `work` and then `after` on a new runtime. An interrupt cancels `stop`. Returns the value of
/// `work`, and the output that was shown while it ran.
///
/// Fails when `work` does not end in time after it was aborted.
pub(super) fn run_calls<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    after: impl Future<Output = ()>,
    stop: &CancellationToken,
    printer: EventPrinter,
    stderr: &mut dyn Write,
) -> Result<(T, String)> {
    let ended = block_on(run_with_events(work, after, stop, printer, stderr))?;
    ended.ok_or_else(|| {
        let error = ToolError::aborted("the call was aborted and did not end in time")
            .hint("its changes may be incomplete; check them before you call it again");
        CommandError::new(exit::exit_code(error.kind()), error)
    })
}

/// Runs `future` on a new multi-threaded runtime.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T> {
    block_on_runtime(Builder::new_multi_thread(), future)
}

/// Runs `future` on a new single-threaded runtime, which has less latency for a server with one
/// client.
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have clients"))]
pub(super) fn block_on_current_thread<T>(future: impl Future<Output = T>) -> Result<T> {
    block_on_runtime(Builder::new_current_thread(), future)
}

fn block_on_runtime<T>(mut builder: Builder, future: impl Future<Output = T>) -> Result<T> {
    let runtime = builder.enable_all().build().map_err(|error| {
        let error = ToolError::internal(format_args!("cannot start a runtime: {error}"));
        CommandError::new(FAILED, error)
    })?;
    let value = runtime.block_on(future);
    // A task that ignores its cancellation must not keep the program alive.
    runtime.shutdown_background();
    Ok(value)
}

/// Runs the work as a task of its own, so that a call that blocks its thread delays neither
/// events nor an interrupt.
///
/// The first shutdown signal aborts the calls. After a timeout, or with a second signal, the work
/// is abandoned and the result is `None`.
async fn run_with_events<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    after: impl Future<Output = ()>,
    stop: &CancellationToken,
    mut printer: EventPrinter,
    stderr: &mut dyn Write,
) -> Option<(T, String)> {
    let mut interrupt = pin!(wait_for_interrupt(Duration::MAX));
    let mut running = tokio::spawn(work);
    let ended = loop {
        tokio::select! {
            biased;
            () = &mut interrupt => {
                if stop.is_cancelled() {
                    return None;
                }
                stop.cancel();
                interrupt.set(wait_for_interrupt(ABORT_TIMEOUT));
            }
            Some(event) = printer.events.recv() => printer.format.print_event(&event, stderr),
            ended = &mut running => break ended,
        }
    };
    let live_output = printer.finish(stderr);
    tokio::select! {
        biased;
        () = interrupt => {}
        () = after => {}
    }
    // The task is never aborted and the pipeline catches panics of tools, so this is a bug.
    let value = ended.unwrap_or_else(|failure| resume_unwind(failure.into_panic()));
    Some((value, live_output))
}

/// Waits for a shutdown signal, at most for `patience`.
async fn wait_for_interrupt(patience: Duration) {
    let told = async {
        // A signal that cannot be caught ends the process by default.
        if signals::wait_for_shutdown().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let _ = tokio::time::timeout(patience, told).await;
}
