//! Work that may take long, on a thread of its own.
//!
//! What strangers write decides how long it takes to judge, and nothing stops a validator once
//! it has begun. So it begins where nobody else has to wait, and who waits does so for a while.
//! What is not waited for goes on to its end, and keeps a place of its server until then, so that
//! no other server has one less. What is known to be little is done where it is, and nothing of
//! that is here.
//!
//! **Invariant:** whoever waits is free again after its patience, whatever the work does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

/// The places of one server: what it keeps busy is not missing to others.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// For lists of tools that are taken in.
    pub(super) lists: Arc<Semaphore>,
    /// For values that are judged.
    pub(super) values: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self { lists: Arc::new(Semaphore::new(1)), values: Arc::new(Semaphore::new(2)) }
    }
}

/// Whether somebody still waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Somebody who waits, until it is dropped.
struct Waiting(Wanted);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Begins it; nothing where the system has no thread for it.
fn begin(place: OwnedSemaphorePermit, work: impl FnOnce() + Send + 'static) -> Option<()> {
    let named = thread::Builder::new().name("tool-sdk judge".to_owned());
    let run = move || {
        let _place = place;
        work();
    };
    named.spawn(run).ok().map(drop)
}

/// Does `work` in one of `places` and waits for it; nothing when that takes longer than
/// `patience`.
pub(super) async fn run<T: Send + 'static>(
    places: &Arc<Semaphore>,
    patience: Duration,
    work: impl FnOnce(&Wanted) -> T + Send + 'static,
) -> Option<T> {
    let wanted = Wanted::default();
    let _waiting = Waiting(wanted.clone());
    let done = async {
        let (tell, told) = oneshot::channel();
        let place = Arc::clone(places).acquire_owned().await.ok()?;
        begin(place, move || drop(tell.send(work(&wanted))))?;
        told.await.ok()
    };
    timeout(patience, done).await.ok()?
}

/// The same for who cannot wait otherwise than by standing still; nothing where there is no
/// place either.
pub(super) fn stand_by<T: Send + 'static>(
    places: &Arc<Semaphore>,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    let place = Arc::clone(places).try_acquire_owned().ok()?;
    begin(place, move || drop(tell.send(work())))?;
    told.recv_timeout(patience).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_too_long_goes_and_the_work_hears_of_it() {
        assert_eq!(run(&Places::default().values, Duration::from_secs(60), |_| 1).await, Some(1));
        let (tell, told) = mpsc::channel();
        let work = move |wanted: &Wanted| {
            while !wanted.is_over() {
                thread::yield_now();
            }
            tell.send(()).unwrap();
        };
        assert_eq!(run(&Places::default().values, Duration::from_millis(1), work).await, None);
        told.recv_timeout(Duration::from_secs(60)).expect("it ended");
    }

    #[tokio::test]
    async fn who_comes_later_waits_for_a_place() {
        let lists = Places::default().lists;
        let each = (0..40).map(|at| run(&lists, Duration::from_secs(60), move |_| at));
        let all: Vec<_> = futures_util::future::join_all(each).await;
        assert_eq!(all, (0..40).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn what_breaks_is_nothing() {
        assert_eq!(stand_by(&Places::default().values, Duration::from_secs(60), || 2), Some(2));
        let broken = || -> u8 { panic!("as planned") };
        assert_eq!(stand_by(&Places::default().values, Duration::from_secs(60), broken), None);
    }
}
