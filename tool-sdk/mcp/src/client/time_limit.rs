//! Runs validation on a thread of its own, with a time limit.
//!
//! The [rules for schemas](super::schema_rules) bound the work, so the limit is the last resort: a
//! thread cannot be stopped, and a late one runs to its end. The caller then turns validation off
//! until the server is connected again, so that such threads do not pile up.
//!
//! **Invariant:** a caller returns after its time limit, however long the work runs.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// The stack of such a thread. A value has up to 128 levels, and a schema up to 32 nested schemas
/// for each; only what is used takes memory.
const STACK_SIZE: usize = 32 << 20;

/// Starts a thread; returns `None` when the system has none left.
fn spawn_thread(work: impl FnOnce() + Send + 'static) -> Option<()> {
    let named = thread::Builder::new().name("tool-sdk validate".to_owned()).stack_size(STACK_SIZE);
    named.spawn(work).ok().map(drop)
}

/// Runs `work`; returns `None` after the time limit, or when the work panics.
pub(super) async fn run_with_limit<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    spawn_thread(move || drop(sender.send(work())))?;
    timeout(limit, receiver).await.ok()?.ok()
}

/// Like [`run_with_limit`], but blocks the current thread.
pub(super) fn block_with_limit<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    spawn_thread(move || drop(sender.send(work())))?;
    receiver.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn caller_returns_before_late_work() {
        assert_eq!(run_with_limit(Duration::from_secs(60), || 1).await, Some(1));
        assert_eq!(block_with_limit(Duration::from_secs(60), || 2), Some(2));
        let (sender, receiver) = mpsc::channel::<()>();
        let receiver = std::sync::Mutex::new(receiver);
        let work = move || receiver.lock().unwrap().recv();
        assert_eq!(run_with_limit(Duration::from_millis(1), work).await, None);
        drop(sender);
    }

    #[test]
    fn panic_returns_none() {
        let broken = || -> u8 { panic!("expected by the test") };
        assert_eq!(block_with_limit(Duration::from_secs(60), broken), None);
    }
}
