//! Waits for the signals that shut the program down.

use std::io;

/// Waits for SIGINT (Ctrl-C), SIGTERM or SIGHUP.
///
/// # Errors
///
/// Fails when signals cannot be caught; they then end the process by default.
#[cfg(unix)]
pub(super) async fn wait_for_shutdown() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let hangup = match is_hangup_ignored() {
        true => None,
        false => Some(signal(SignalKind::hangup())?),
    };
    let hung_up = async {
        match hangup {
            Some(mut hangup) => hangup.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        caught = tokio::signal::ctrl_c() => caught,
        _ = terminate.recv() => Ok(()),
        _ = hung_up => Ok(()),
    }
}

#[cfg(not(unix))]
pub(super) async fn wait_for_shutdown() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Whether SIGHUP is ignored, as `nohup` does it. Returns true if that is unknown, so that the
/// signal keeps its disposition.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 is signal 1, which is SIGHUP.
    ignored.is_none_or(|mask| mask & 1 != 0)
}
