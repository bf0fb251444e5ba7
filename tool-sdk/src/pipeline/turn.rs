//! When an approved call may run beside others: the port behind which a batch stands.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use crate::error::ToolError;
use crate::permission::By;
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
    /// Waits until each call before this one is decided, or waits for an answer.
    fn in_line(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Lets those behind it come: the call waits for an answer.
    fn asks(&self);

    /// Where its question stands among those of the others.
    fn line(&self) -> Arc<dyn Line>;

    /// Waits until the call may run.
    fn wait<'a>(
        &'a self,
        facts: &Facts,
    ) -> Pin<Box<dyn Future<Output = Result<Permit, ToolError>> + Send + 'a>>;

    /// Lets no other call begin any more. The first reason stays.
    fn stop(&self, why: Stop);

    /// Why no call begins any more.
    fn stopped(&self) -> Option<Stop>;
}

/// The order in which somebody is shown what a batch asks: that of its calls.
pub(crate) trait Line: Send + Sync {
    /// Waits until each call before this one is decided, or its question was shown.
    fn come(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Lets those behind it come: its question is shown, or nobody will be shown it.
    fn shown(&self);
}

/// Why calls that have not begun do not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Somebody plainly rejected another call.
    Rejected,
    /// A hook that looked at another call ended the model's turn.
    Halted,
}

impl Stop {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "the user rejected another call of the batch",
            Self::Halted => "a hook ended the turn with another call of the batch",
        }
    }

    pub(crate) const fn by(self) -> By {
        match self {
            Self::Rejected => By::Reply,
            Self::Halted => By::Hook,
        }
    }
}
