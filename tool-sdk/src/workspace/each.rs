//! The same work for each of many files, on several threads.

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::{self, available_parallelism};

use crate::error::ToolError;

/// So few that starting a thread takes longer.
const FEW: usize = 16;

/// More threads wait for the locks of a folder only.
const MOST: usize = 4;

/// How many threads there are for many items; to find that out, the system reads files.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(1, usize::from).min(MOST));

/// What one of several threads has to do; whoever is done helps the others.
type Queue<'i, T> = Mutex<VecDeque<&'i mut T>>;

/// Does something with each, in no particular order when there are many.
///
/// Each thread has its turns: what was done for an item before was done by the same one, which
/// has what belongs to it at hand. After a failure nothing more is begun; it is that failure
/// which is told.
pub(super) fn each<T: Send>(
    items: &mut [T],
    act: impl Fn(&mut T) -> Result<(), ToolError> + Sync,
) -> Result<(), ToolError> {
    let threads = match items.len() {
        0..=FEW => 1,
        _ => *THREADS,
    };
    let mut queues: Vec<VecDeque<&mut T>> = (0..threads).map(|_| VecDeque::new()).collect();
    for (at, item) in items.iter_mut().enumerate() {
        queues[at % threads].push_back(item);
    }
    let queues: Vec<Queue<'_, T>> = queues.into_iter().map(Mutex::new).collect();
    let failure = OnceLock::new();
    let work = &|own: usize| {
        while failure.get().is_none()
            && let Some(item) = (0..threads).find_map(|at| next(&queues[(own + at) % threads]))
        {
            if let Err(error) = act(item) {
                let _ = failure.set(error);
            }
        }
    };
    // This one only waits: a new thread mostly begins where the one that started it goes on, and
    // then not before the system has noticed.
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

fn next<'i, T>(queue: &Queue<'i, T>) -> Option<&'i mut T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once() {
        for count in [0, 1, FEW, FEW + 1, 1000] {
            let mut items = vec![0; count];
            each(&mut items, |item| {
                *item += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(items, vec![1; count]);
        }
    }

    #[test]
    fn nothing_is_begun_after_a_failure() {
        for count in [FEW, 1000] {
            let mut items: Vec<usize> = (0..count).collect();
            let fails = |item: &mut usize| match *item {
                0 => Err(ToolError::failed("the first one")),
                _ => {
                    *item = 0;
                    // The failure is known by then.
                    thread::yield_now();
                    Ok(())
                }
            };
            assert_eq!(each(&mut items, fails).unwrap_err().message(), "the first one");
            assert_ne!(items.last(), Some(&0), "{count}");
        }
    }
}
