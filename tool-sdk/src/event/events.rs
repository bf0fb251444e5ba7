//! A subscription: how events are read.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::ToolEvent;
use super::hub::Hub;

/// A subscription to the events of a pipeline.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Call, EventKind, Pipeline, Registry, Session, tool, tools};
///
/// /// Say hello.
/// #[tool(read)]
/// fn hello() -> &'static str {
///     "hello"
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let pipeline = Pipeline::new(Registry::builder().add(tools![hello]).build()?);
/// let mut events = pipeline.subscribe();
/// pipeline.call(&Session::default(), Call::new("hello", "{}")).await;
///
/// let mut seen = 0;
/// while let Some(event) = events.recv().await {
///     assert_eq!(event.tool.name, "hello");
///     seen += 1;
///     if event.kind.is_terminal() {
///         break;
///     }
/// }
/// assert_eq!(seen, 3, "it was understood, it ran, it ended");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Events {
    wakeup: Arc<Notify>,
    hub: Arc<Hub>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    pub(super) fn new(wakeup: Arc<Notify>, hub: Arc<Hub>) -> Self {
        Self { wakeup, hub }
    }

    /// Returns the next event; `None` once the pipeline is closed or dropped, everything was
    /// read, and every call has ended whose beginning was read.
    pub async fn recv(&mut self) -> Option<ToolEvent> {
        loop {
            let notified = self.wakeup.notified();
            if let Some(event) = self.hub.pop(&self.wakeup) {
                return Some(event);
            }
            if self.hub.is_settled(&self.wakeup) {
                // An event may have come between the two looks.
                return self.hub.pop(&self.wakeup);
            }
            notified.await;
        }
    }

    /// Returns the next event, if there is one already.
    pub fn try_recv(&mut self) -> Option<ToolEvent> {
        self.hub.pop(&self.wakeup)
    }

    /// Whether an event of a `wanted` kind waits; it goes on waiting.
    #[cfg(feature = "mcp")]
    pub(crate) fn contains(&self, wanted: impl Fn(&super::EventKind) -> bool) -> bool {
        self.hub.contains(&self.wakeup, wanted)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hub.unsubscribe(&self.wakeup);
    }
}
