//! How long the tools of a plugin may run.
//!
//! The pipeline ends running calls of a plugin that is being unloaded; the plugin waits for them.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;

/// How long the tools of a plugin may run: until the plugin is unloaded.
#[derive(Clone, Debug)]
pub struct PluginLifetime {
    pub(crate) id: Arc<str>,
    /// Triggered when the plugin is being unloaded.
    pub(crate) unloading: CancellationToken,
    /// Held for reading by running calls, and for writing by the end of the plugin.
    pub(crate) calls: Arc<RwLock<()>>,
}

impl PluginLifetime {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.into(), unloading: CancellationToken::new(), calls: Arc::default() }
    }

    /// Counts a call as running while the guard is held; `None` when the plugin is being unloaded.
    pub(crate) fn begin_call(&self) -> Option<OwnedRwLockReadGuard<()>> {
        let guard = Arc::clone(&self.calls).try_read_owned().ok()?;
        (!self.unloading.is_cancelled()).then_some(guard)
    }

    /// Returns the error of a call that ends because its plugin is unloaded.
    pub(crate) fn unloaded_error(&self) -> ToolError {
        let id = &self.id;
        ToolError::unavailable(format_args!("the plugin `{id}` was unloaded while the call ran"))
            .hint("its tools are gone; go on without them")
    }
}
