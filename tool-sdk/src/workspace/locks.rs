//! Locks of files, so that two changes of one file come one after the other.
//!
//! A lock holds from the reading of a file to the writing. It does not hold while somebody
//! is asked: what was read by then is checked again before it is replaced.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Located, Workspace};

/// How many locks there are. Files that share one only wait for each other.
const LOCKS: usize = 256;

/// The locks of a workspace; which one is a file's follows from its path.
pub(super) struct Locks(Vec<Arc<Mutex<()>>>);

impl Default for Locks {
    fn default() -> Self {
        Self((0..LOCKS).map(|_| Arc::default()).collect())
    }
}

/// Files that nobody else with the same workspace changes while this value exists.
#[derive(Debug)]
#[must_use = "the files are free again when it is dropped"]
pub struct FileLocks {
    _held: Vec<OwnedMutexGuard<()>>,
}

impl Workspace {
    /// Waits until nobody else changes these files.
    ///
    /// A lock is known by a file's path without links, so the places should be
    /// [real](Located::real) ones.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(cx: &tool_sdk::Context) -> Result<(), tool_sdk::ToolError> {
    /// use tool_sdk::{Changes, Workspace};
    ///
    /// let workspace = cx.state::<Workspace>()?;
    /// let place = workspace.resolve("notes.txt")?.real()?;
    /// let locks = workspace.lock([&place]).await;
    /// cx.blocking(move |stop| {
    ///     // Held until the file is written, also when nobody waits for that any more.
    ///     let _locks = locks;
    ///     let before = place.snapshot(1024 * 1024)?;
    ///     let text = [before.content().unwrap_or_default(), b"one more line\n"].concat();
    ///     stop.hold()?;
    ///     Changes::new().write(place, before, text).apply(|| stop.is_stopped())
    /// })
    /// .await
    /// # }
    /// ```
    pub async fn lock<'p>(&self, places: impl IntoIterator<Item = &'p Located>) -> FileLocks {
        let mut wanted: Vec<usize> = places.into_iter().map(index).collect();
        // In one order for everybody, so that two calls never wait for each other.
        wanted.sort_unstable();
        wanted.dedup();
        let mut held = Vec::with_capacity(wanted.len());
        for index in wanted {
            held.push(Arc::clone(&self.0.locks.0[index]).lock_owned().await);
        }
        FileLocks { _held: held }
    }
}

fn index(place: &Located) -> usize {
    let mut hasher = DefaultHasher::new();
    place.absolute().hash(&mut hasher);
    (hasher.finish() % LOCKS as u64) as usize
}
