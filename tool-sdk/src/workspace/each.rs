//! The same work for each of many files, on several threads.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};

use crate::error::ToolError;

/// So few that starting a thread takes longer.
const FEW: usize = 16;

/// More threads wait for the locks of a folder only.
const MOST: usize = 4;

/// How many threads there are for many items; to find that out, the system reads files.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(1, usize::from).min(MOST));

/// What is left to do, and what went wrong.
struct Rest<'i, T> {
    items: std::slice::IterMut<'i, T>,
    result: Result<(), ToolError>,
}

/// Does something with each, in no particular order when there are many.
///
/// After a failure nothing more is begun; it is that failure which is told.
pub(super) fn each<T: Send>(
    items: &mut [T],
    act: impl Fn(&mut T) -> Result<(), ToolError> + Sync,
) -> Result<(), ToolError> {
    let threads = match items.len() {
        0..=FEW => 1,
        _ => *THREADS,
    };
    let rest = Mutex::new(Rest { items: items.iter_mut(), result: Ok(()) });
    let work = || {
        while let Some(item) = next(&rest) {
            if let Err(error) = act(item) {
                fail(&rest, error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where the system has no more threads, this one does it all.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    rest.into_inner().unwrap_or_else(PoisonError::into_inner).result
}

fn next<'i, T>(rest: &Mutex<Rest<'i, T>>) -> Option<&'i mut T> {
    lock(rest).items.next()
}

fn fail<T>(rest: &Mutex<Rest<'_, T>>, error: ToolError) {
    let mut rest = lock(rest);
    if rest.result.is_ok() {
        rest.result = Err(error);
    }
    rest.items = [].iter_mut();
}

fn lock<'m, 'i, T>(rest: &'m Mutex<Rest<'i, T>>) -> MutexGuard<'m, Rest<'i, T>> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
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
