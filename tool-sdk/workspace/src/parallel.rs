//! Runs a function for many files on a few threads.

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::{self, available_parallelism};

use crate::error::WorkspaceError;

/// Up to this number of items, starting threads takes longer than the work.
const SEQUENTIAL_ITEMS: usize = 16;

/// More threads only contend for the kernel's lock of a folder.
const MAX_THREADS: usize = 4;

/// The number of threads, cached because `available_parallelism` reads files.
static THREAD_COUNT: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(1, usize::from).min(MAX_THREADS));

/// The work queue of one thread. A thread whose queue is empty steals from the others.
type WorkQueue<'i, T> = Mutex<VecDeque<&'i mut T>>;

/// Calls `act` for every item, in no particular order when there are many.
///
/// Items are assigned round-robin, so that with the same items a thread finds in its cache what
/// it wrote in the previous call. After the first failure no more items are started, and that
/// failure is returned.
pub(super) fn for_each_parallel<T: Send>(
    items: &mut [T],
    act: impl Fn(&mut T) -> Result<(), WorkspaceError> + Sync,
) -> Result<(), WorkspaceError> {
    let threads = match items.len() {
        0..=SEQUENTIAL_ITEMS => 1,
        _ => *THREAD_COUNT,
    };
    let mut queues: Vec<VecDeque<&mut T>> = (0..threads).map(|_| VecDeque::new()).collect();
    for (at, item) in items.iter_mut().enumerate() {
        queues[at % threads].push_back(item);
    }
    let queues: Vec<WorkQueue<'_, T>> = queues.into_iter().map(Mutex::new).collect();
    let failure = OnceLock::new();
    let work = &|own: usize| {
        while failure.get().is_none()
            && let Some(item) = (0..threads).find_map(|at| pop_item(&queues[(own + at) % threads]))
        {
            if let Err(error) = act(item) {
                let _ = failure.set(error);
            }
        }
    };
    // The calling thread only waits: the kernel often starts a new thread on the same core, where
    // it would have to wait for this one.
    let has_started = threads > 1
        && thread::scope(|scope| {
            let start = |own| thread::Builder::new().spawn_scoped(scope, move || work(own)).is_ok();
            (0..threads).filter(|&own| start(own)).count() > 0
        });
    if !has_started {
        work(0);
    }
    failure.into_inner().map_or(Ok(()), Err)
}

fn pop_item<'i, T>(queue: &WorkQueue<'i, T>) -> Option<&'i mut T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_every_item_once() {
        for count in [0, 1, SEQUENTIAL_ITEMS, SEQUENTIAL_ITEMS + 1, 1000] {
            let mut items = vec![0; count];
            for_each_parallel(&mut items, |item| {
                *item += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(items, vec![1; count]);
        }
    }

    #[test]
    fn stops_after_the_first_failure() {
        for count in [SEQUENTIAL_ITEMS, 1000] {
            let mut items: Vec<usize> = (0..count).collect();
            let fails = |item: &mut usize| match *item {
                0 => Err(WorkspaceError::failed("the first one")),
                _ => {
                    *item = 0;
                    // Give the other thread time to record the failure.
                    thread::yield_now();
                    Ok(())
                }
            };
            assert_eq!(
                for_each_parallel(&mut items, fails).unwrap_err().message(),
                "the first one"
            );
            assert_ne!(items.last(), Some(&0), "{count}");
        }
    }
}
