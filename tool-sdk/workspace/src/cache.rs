//! A cache for the tools, one per root: it lives as long as the root is open, and is not shared
//! with other workspaces.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ResolvedPath;

/// One cached value per type.
#[derive(Default)]
pub(super) struct RootCache(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl RootCache {
    fn get_or_default<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        Arc::clone(value).downcast().unwrap_or_default()
    }
}

impl ResolvedPath {
    /// Returns the cache value of the type `T` of this root, which all clones of the workspace
    /// share. It is created with [`Default`] on first use.
    ///
    /// The cache is in memory only, so it is for values that can be computed again. A value
    /// must bound its own size.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use tool_sdk::Workspace;
    ///
    /// #[derive(Default)]
    /// struct LookupCount(AtomicUsize);
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let workspace = Workspace::open([folder.path()])?;
    /// workspace.resolve("a")?.root_cache::<LookupCount>().0.fetch_add(1, Ordering::Relaxed);
    /// assert_eq!(workspace.resolve("b")?.root_cache::<LookupCount>().0.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn root_cache<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.root().cache.get_or_default()
    }
}
