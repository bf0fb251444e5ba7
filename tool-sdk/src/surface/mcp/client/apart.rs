//! Work that may take long, on a thread of its own.
//!
//! What strangers write decides how long it takes to judge, and nothing stops a validator once
//! it has begun. So it begins where nobody else has to wait, and who waits does so for a while.
//! What is not waited for goes on to its end; then and as long as it does, little else begins.
//!
//! **Invariant:** no thread where connections live ever does such work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// How many of them there are at most.
const MOST: usize = 8;

static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Whether somebody still waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody who waits, until it is dropped.
struct Waiting(Wanted);

/// A place among those that work.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let place = |busy: usize| (busy < MOST).then_some(busy + 1);
        BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, place).ok().map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Begins it; nothing where too many others have not come to their end.
fn begin(work: impl FnOnce() + Send + 'static) -> Option<()> {
    let place = Place::take()?;
    let named = thread::Builder::new().name("tool-sdk judge".to_owned());
    let run = move || {
        let _place = place;
        work();
    };
    named.spawn(run).ok().map(drop)
}

/// Does `work` and waits for it; nothing when that takes longer than `patience`.
pub(super) async fn run<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce(&Wanted) -> T + Send + 'static,
) -> Option<T> {
    let wanted = Wanted::default();
    let _waiting = Waiting(wanted.clone());
    let (tell, told) = oneshot::channel();
    begin(move || drop(tell.send(work(&wanted))))?;
    timeout(patience, told).await.ok()?.ok()
}

/// The same for who cannot wait otherwise than by standing still.
pub(super) fn stand_by<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    begin(move || drop(tell.send(work())))?;
    told.recv_timeout(patience).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_too_long_goes_and_the_work_hears_of_it() {
        assert_eq!(run(Duration::from_secs(60), |_| 1).await, Some(1));
        let (tell, told) = mpsc::channel();
        let work = move |wanted: &Wanted| {
            while !wanted.is_over() {
                thread::yield_now();
            }
            tell.send(()).unwrap();
        };
        assert_eq!(run(Duration::from_millis(1), work).await, None);
        told.recv_timeout(Duration::from_secs(60)).expect("it ended");
    }

    #[test]
    fn what_breaks_is_nothing() {
        assert_eq!(stand_by(Duration::from_secs(60), || 2), Some(2));
        let broken = || -> u8 { panic!("as planned") };
        assert_eq!(stand_by(Duration::from_secs(60), broken), None);
    }
}
