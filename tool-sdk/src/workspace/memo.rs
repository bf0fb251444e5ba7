//! What tools remember about the files below a root: it lives as long as the root is open,
//! and no other workspace sees it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Located;

/// One value of each type.
#[derive(Default)]
pub(super) struct Memo(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Memo {
    fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        Arc::clone(value).downcast().unwrap_or_default()
    }
}

impl Located {
    /// What is remembered under the type `T` for the files of this root, shared by all who
    /// have the root open through the same workspace.
    ///
    /// It is for what can be found out again: nothing is ever written to a disk. A value
    /// bounds what it holds itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use tool_sdk::Workspace;
    ///
    /// #[derive(Default)]
    /// struct Looked(AtomicUsize);
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let workspace = Workspace::open([folder.path()])?;
    /// workspace.resolve("a")?.memo::<Looked>().0.fetch_add(1, Ordering::Relaxed);
    /// assert_eq!(workspace.resolve("b")?.memo::<Looked>().0.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memo<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.root().memo.get()
    }
}
