//! In-process file locks that serialize changes of the same file.
//!
//! A tool holds the lock from reading the file to writing it. No lock is held while the user is
//! asked for approval; the snapshot is compared again before the file is replaced.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{ResolvedPath, Workspace};

/// The number of locks. Files that share one are serialized, which is harmless.
const LOCK_COUNT: usize = 256;

/// The locks of a workspace; a file's lock is chosen by the hash of its path (lock striping).
pub(super) struct FileLockTable(Vec<Arc<Mutex<()>>>);

impl Default for FileLockTable {
    fn default() -> Self {
        Self((0..LOCK_COUNT).map(|_| Arc::default()).collect())
    }
}

/// A guard that holds the locks of some files. Other calls with the same workspace wait for it.
#[derive(Debug)]
#[must_use = "the files are unlocked when it is dropped"]
pub struct FileLocks {
    _held: Vec<OwnedMutexGuard<()>>,
}

impl Workspace {
    /// Waits for the locks of these files, and acquires them.
    ///
    /// The lock belongs to the path of a file, so the paths should be
    /// [canonical](ResolvedPath::canonicalize).
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(cx: &tool_sdk::Context) -> Result<(), tool_sdk::ToolError> {
    /// use tool_sdk::{FileTransaction, Workspace};
    ///
    /// let workspace = cx.state::<Workspace>()?;
    /// let path = workspace.resolve("notes.txt")?.canonicalize()?;
    /// let locks = workspace.lock_files([&path]).await;
    /// cx.run_blocking(move |stop| {
    ///     // Held until the file is written, even if the call is cancelled.
    ///     let _locks = locks;
    ///     let before = path.snapshot(1024 * 1024)?;
    ///     let text = [before.content().unwrap_or_default(), b"one more line\n"].concat();
    ///     stop.hold()?;
    ///     Ok(FileTransaction::new().write(path, before, text).commit(|| stop.is_stopped())?)
    /// })
    /// .await
    /// # }
    /// ```
    pub async fn lock_files<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p ResolvedPath>,
    ) -> FileLocks {
        let mut indices: Vec<usize> = paths.into_iter().map(lock_index).collect();
        // Always lock in ascending order, so that two calls cannot deadlock.
        indices.sort_unstable();
        indices.dedup();
        let mut held = Vec::with_capacity(indices.len());
        for index in indices {
            held.push(Arc::clone(&self.0.locks.0[index]).lock_owned().await);
        }
        FileLocks { _held: held }
    }
}

fn lock_index(path: &ResolvedPath) -> usize {
    let mut hasher = DefaultHasher::new();
    path.absolute_path().hash(&mut hasher);
    (hasher.finish() % LOCK_COUNT as u64) as usize
}
