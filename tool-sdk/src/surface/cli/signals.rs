//! How the program is told to end.

use std::io;

/// Waits for Ctrl-C, or for what the system or another program sends in its place.
///
/// # Errors
///
/// Fails where signals cannot be caught; they end the process then, as they always did.
#[cfg(unix)]
pub(super) async fn end() -> io::Result<()> {
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
pub(super) async fn end() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Whether the program was started to go on without its terminal, as `nohup` does it; where
/// that is unknown, the signal is left as it is.
#[cfg(unix)]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit is that of the first signal, which is this one.
    ignored.is_none_or(|mask| mask & 1 != 0)
}
