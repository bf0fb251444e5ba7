//! When an approved call may run beside others: the port behind which a batch stands.

use std::any::Any;
use std::pin::Pin;

use crate::error::ToolError;
use crate::tool::Parallel;

/// What a batch needs to know of an approved call.
pub(crate) struct Facts {
    pub(crate) parallel: Parallel,
    /// The resource by which calls of the tool are serialised.
    pub(crate) key: Option<String>,
}

/// Held while a call runs.
pub(crate) type Permit = Box<dyn Any + Send>;

/// What lets calls run in their turn.
pub(crate) trait Turn: Send + Sync {
    /// Waits until the call may run.
    fn wait<'a>(
        &'a self,
        facts: &Facts,
    ) -> Pin<Box<dyn Future<Output = Result<Permit, ToolError>> + Send + 'a>>;

    /// Hears that somebody plainly rejected the call.
    fn rejected(&self);

    /// Whether somebody plainly rejected one of the calls.
    fn is_rejected(&self) -> bool;
}
