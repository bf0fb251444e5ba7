//! The toolset in which the tools of workers are published.
//!
//! **Invariant:** no other namespace whose tools would have the same names is attached to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tool_sdk_core::Toolset;
use tool_sdk_core::internal::PrefixReservation;

use crate::error::RemoteError;
use crate::namespace::Namespace;

/// The toolset in which the tools of workers are published, once there is one.
#[derive(Debug, Default)]
pub(super) struct AttachedToolset(Mutex<Option<ToolsetAttachment>>);

#[derive(Debug)]
struct ToolsetAttachment {
    toolset: Weak<Toolset>,
    _reservation: PrefixReservation,
}

impl AttachedToolset {
    /// Attaches another toolset in place of the current one. Fails when it has another namespace whose
    /// tools would have the same names; nothing has changed then.
    pub(super) fn attach(
        &self,
        toolset: &Arc<Toolset>,
        namespace: &Namespace,
    ) -> Result<(), RemoteError> {
        let mut attached = self.lock();
        let current = attached.as_ref().map(|it| it.toolset.as_ptr());
        if current == Some(Arc::as_ptr(toolset)) {
            return Ok(());
        }
        let taken = toolset.reserve_prefix(&namespace.prefix(), namespace.as_str());
        let reservation = taken.map_err(|taken| match taken.source == namespace.as_str() {
            true => RemoteError::Config(format!(
                "workers of the namespace `{namespace}` are attached already"
            )),
            false => RemoteError::Config(shared_prefix_message(&taken.source, namespace)),
        })?;
        let toolset = Arc::downgrade(toolset);
        *attached = Some(ToolsetAttachment { toolset, _reservation: reservation });
        Ok(())
    }

    /// Returns the toolset, if it is still in use.
    pub(super) fn upgrade(&self) -> Option<Arc<Toolset>> {
        self.lock().as_ref()?.toolset.upgrade()
    }

    /// Detaches the toolset, so that another namespace can be attached to it.
    pub(super) fn detach(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<ToolsetAttachment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says why two namespaces cannot be used together.
#[must_use]
pub fn shared_prefix_message(one: &str, other: &Namespace) -> String {
    format!(
        "the namespaces `{one}` and `{other}` cannot be used together: their tools would have the \
         same names, as `-` and `_` are equal there"
    )
}
