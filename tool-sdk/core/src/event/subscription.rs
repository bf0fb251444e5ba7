//! A subscription: how events are read.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::ToolEvent;
use super::bus::EventBus;

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
pub struct Subscription {
    wakeup: Arc<Notify>,
    bus: Arc<EventBus>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Subscription {
    pub(super) fn new(wakeup: Arc<Notify>, bus: Arc<EventBus>) -> Self {
        Self { wakeup, bus }
    }

    /// Returns the next event; `None` once the pipeline is closed or dropped, every event was
    /// read, and every call whose start was read has ended.
    pub async fn recv(&mut self) -> Option<ToolEvent> {
        loop {
            let notified = self.wakeup.notified();
            if let Some(event) = self.bus.pop_event(&self.wakeup) {
                return Some(event);
            }
            if self.bus.is_ready(&self.wakeup) {
                // An event may have arrived between the two checks.
                return self.bus.pop_event(&self.wakeup);
            }
            notified.await;
        }
    }

    /// Returns the next event, if there is one already.
    pub fn try_recv(&mut self) -> Option<ToolEvent> {
        self.bus.pop_event(&self.wakeup)
    }

    /// Whether an event of a `wanted` kind is queued; the event stays in the queue.
    #[doc(hidden)]
    pub fn contains(&self, wanted: impl Fn(&super::EventKind) -> bool) -> bool {
        self.bus.contains_event(&self.wakeup, wanted)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bus.unsubscribe(&self.wakeup);
    }
}
