//! Runs CPU-bound validation on dedicated threads, with a timeout and a concurrency limit per server.
//!
//! Schemas and values come from servers, so validating them may take long, and a validator cannot
//! be interrupted. The caller waits at most for its timeout; the thread runs to its end and holds
//! its semaphore permit until then, so a slow server uses up its own permits only. Cheap work does
//! not come here: callers run it inline.
//!
//! **Invariant:** a caller returns after its timeout, however long the work runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

/// The thread limits of one server.
#[derive(Clone, Debug)]
pub(super) struct BlockingPools {
    /// Permits for preparing a list of tools.
    pub(super) listing: Arc<Semaphore>,
    /// Permits for validating arguments and results.
    pub(super) validation: Arc<Semaphore>,
}

impl Default for BlockingPools {
    fn default() -> Self {
        Self { listing: Arc::new(Semaphore::new(1)), validation: Arc::new(Semaphore::new(2)) }
    }
}

/// Tells the work whether its caller has stopped waiting.
#[derive(Clone, Debug, Default)]
pub(super) struct AbandonFlag(Arc<AtomicBool>);

impl AbandonFlag {
    pub(super) fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the flag when the caller stops waiting.
struct AbandonOnDrop(AbandonFlag);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a new thread; returns `None` when no thread can be started.
fn spawn_thread(place: OwnedSemaphorePermit, work: impl FnOnce() + Send + 'static) -> Option<()> {
    let named = thread::Builder::new().name("tool-sdk validate".to_owned());
    let run = move || {
        let _place = place;
        work();
    };
    named.spawn(run).ok().map(drop)
}

/// Runs `work` on its own thread, once a permit of `places` is free. Returns `None` on timeout
/// or when the work panics. `patience` includes the wait for the permit.
pub(super) async fn run_with_timeout<T: Send + 'static>(
    places: &Arc<Semaphore>,
    patience: Duration,
    work: impl FnOnce(&AbandonFlag) -> T + Send + 'static,
) -> Option<T> {
    let wanted = AbandonFlag::default();
    let _waiting = AbandonOnDrop(wanted.clone());
    let done = async {
        let (tell, told) = oneshot::channel();
        let place = Arc::clone(places).acquire_owned().await.ok()?;
        spawn_thread(place, move || drop(tell.send(work(&wanted))))?;
        told.await.ok()
    };
    timeout(patience, done).await.ok()?
}

/// Like [`run_with_timeout`], but blocks the current thread. Returns `None` when no permit is free either.
pub(super) fn block_with_timeout<T: Send + 'static>(
    places: &Arc<Semaphore>,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    let place = Arc::clone(places).try_acquire_owned().ok()?;
    spawn_thread(place, move || drop(tell.send(work())))?;
    told.recv_timeout(patience).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn timeout_sets_the_abandon_flag() {
        assert_eq!(
            run_with_timeout(&BlockingPools::default().validation, Duration::from_secs(60), |_| 1)
                .await,
            Some(1)
        );
        let (tell, told) = mpsc::channel();
        let work = move |wanted: &AbandonFlag| {
            while !wanted.is_abandoned() {
                thread::yield_now();
            }
            tell.send(()).unwrap();
        };
        assert_eq!(
            run_with_timeout(&BlockingPools::default().validation, Duration::from_millis(1), work)
                .await,
            None
        );
        told.recv_timeout(Duration::from_secs(60)).expect("it ended");
    }

    #[tokio::test]
    async fn waits_for_a_free_permit() {
        let lists = BlockingPools::default().listing;
        let each = (0..40).map(|at| run_with_timeout(&lists, Duration::from_secs(60), move |_| at));
        let all: Vec<_> = futures_util::future::join_all(each).await;
        assert_eq!(all, (0..40).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn panic_returns_none() {
        assert_eq!(
            block_with_timeout(&BlockingPools::default().validation, Duration::from_secs(60), || 2),
            Some(2)
        );
        let broken = || -> u8 { panic!("expected by the test") };
        assert_eq!(
            block_with_timeout(
                &BlockingPools::default().validation,
                Duration::from_secs(60),
                broken
            ),
            None
        );
    }
}
