//! A subscription: how events are read.
//!
//! A subscriber takes all that waits for it at once and reads it from there, so that it rarely
//! meets those who send.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{fmt, mem};

use super::ToolEvent;
use super::hub::Hub;
use super::queue::Bell;
use super::row::Row;

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
    bell: Arc<Bell>,
    hub: Arc<Hub>,
    /// What was taken.
    taken: Row,
    /// How many of those were read.
    read: usize,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("taken", &self.unread().len()).finish_non_exhaustive()
    }
}

impl Events {
    pub(super) fn new(bell: Arc<Bell>, hub: Arc<Hub>) -> Self {
        Self { bell, hub, taken: Row::default(), read: 0 }
    }

    /// The next event; `None` once the pipeline is closed or gone, everything was read, and
    /// every call has ended whose beginning was read.
    pub async fn recv(&mut self) -> Option<ToolEvent> {
        self.arrival().await;
        self.try_recv()
    }

    /// The next event, if there is one already.
    pub fn try_recv(&mut self) -> Option<ToolEvent> {
        self.take();
        let event = self.taken.take(self.read)?;
        self.read += 1;
        Some(event)
    }

    /// All events that wait, once there are any; `None` where [`recv`](Self::recv) would be.
    ///
    /// They are lent until more is read, which is cheaper than to be given each, and no event
    /// is lost when this is dropped before it is done.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
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
    /// for _ in 0..2 {
    ///     pipeline.call(&Session::default(), Call::new("hello", "{}")).await;
    /// }
    /// drop(pipeline);
    ///
    /// let mut ended = 0;
    /// while let Some(all) = events.recv_all().await {
    ///     ended += all.iter().filter(|event| event.kind.is_terminal()).count();
    /// }
    /// assert_eq!(ended, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn recv_all(&mut self) -> Option<&[ToolEvent]> {
        self.arrival().await;
        Some(self.try_recv_all()).filter(|events| !events.is_empty())
    }

    /// All events that wait already, lent until more is read.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
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
    /// assert!(events.try_recv_all().is_empty());
    ///
    /// pipeline.call(&Session::default(), Call::new("hello", "{}")).await;
    /// assert_eq!(events.try_recv_all().len(), 3, "it was understood, it ran, it ended");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_recv_all(&mut self) -> &[ToolEvent] {
        self.take();
        let read = mem::replace(&mut self.read, self.taken.len());
        &self.taken.events()[read..]
    }

    /// Waits until something can be read, or nothing will come any more.
    async fn arrival(&mut self) {
        if !self.unread().is_empty() {
            return;
        }
        // What was lent is given back before waiting, so that it is not kept meanwhile.
        self.free();
        while !self.is_rung() {
            let woken = self.bell.ready.notified();
            tokio::pin!(woken);
            // Registered before looking, so that nothing is missed in between.
            woken.as_mut().enable();
            // In this order, since no call begins after the end.
            let closed = self.hub.is_closed();
            let (waits, is_owed_an_end) = self.hub.look(&self.bell);
            if waits || closed && !is_owed_an_end {
                return;
            }
            woken.await;
        }
    }

    fn unread(&self) -> &[ToolEvent] {
        &self.taken.events()[self.read..]
    }

    /// Takes what waits, once all was read that was taken before.
    #[inline]
    fn take(&mut self) {
        if self.read < self.taken.len() {
            return;
        }
        self.free();
        if self.is_rung() {
            self.hub.take(&self.bell, &mut self.taken);
        }
    }

    /// Leaves free what was read.
    #[inline]
    fn free(&mut self) {
        self.taken.clear();
        self.read = 0;
    }

    /// Whether something waits to be taken.
    #[inline]
    fn is_rung(&self) -> bool {
        self.bell.rung.load(Ordering::Acquire)
    }
}

#[cfg(feature = "mcp")]
impl Events {
    /// Whether something that is `wanted` waits; all of it goes on waiting.
    pub(crate) fn has(&mut self, wanted: impl Fn(&super::EventKind) -> bool) -> bool {
        if self.is_rung() {
            let mut more = Row::default();
            self.hub.take(&self.bell, &mut more);
            self.taken.append(more);
        }
        self.unread().iter().any(|event| wanted(&event.kind))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hub.unsubscribe(&self.bell);
    }
}
