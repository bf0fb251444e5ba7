//! What happens to calls, told as it happens to whoever listens.
//!
//! A subscriber that does not keep up loses progress, and is told how much; it never loses
//! the end of a call, and it never slows a tool down.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::Notify;

use crate::call::{CallId, Note, Truncated};
use crate::context::{Context, Session, Signal, Sink};
use crate::error::ErrorKind;
use crate::hook::HookRun;
use crate::loop_guard::Finding;
use crate::name::ToolName;
use crate::permission::{Ask, AskId, Decision};
use crate::tool::{Display, Source};

/// Something that happened to a call.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ToolEvent {
    /// Grows with every event of the pipeline.
    pub seq: u64,
    /// The call.
    pub call: CallId,
    /// The tool's name, as the registry has it.
    pub tool: ToolName,
    /// The session's id.
    pub session: Arc<str>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The call was understood.
    Pending {
        /// How the tool is shown.
        display: Arc<Display>,
        /// Where the tool comes from.
        source: Source,
        /// The arguments, sensitive values masked.
        arguments: Value,
        /// One line for people.
        summary: Option<String>,
        /// What was accepted beyond the contract.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<Note>,
    },
    /// A hook looks at the call.
    HookStarted {
        /// Its name.
        hook: String,
    },
    /// A hook has looked at the call.
    HookFinished(HookRun),
    /// Somebody is asked.
    PermissionAsked(Arc<Ask>),
    /// An ask has its answer.
    PermissionReplied {
        /// The ask.
        ask: AskId,
        /// The answer: `once`, `session`, `always`, `reject`, `reject_with`, `covered` by
        /// an approval for another ask, `expired`, or `aborted`.
        reply: Cow<'static, str>,
    },
    /// Something that the host should know, which changes nothing for the call.
    Warned {
        /// What it is.
        message: String,
    },
    /// The call may not run; its end follows.
    Denied(Decision),
    /// The call repeats what was done before.
    Looped {
        /// How often.
        times: u32,
        /// The length of the cycle; 1 for one call again and again.
        cycle: usize,
        /// Whether it is refused for good.
        stopped: bool,
    },
    /// The tool runs.
    Started,
    /// The tool says how far it is.
    Progress {
        /// Steps done.
        done: u64,
        /// Steps in all, when known.
        total: Option<u64>,
        /// What it does now.
        message: String,
    },
    /// The tool says something about itself.
    Metadata {
        /// Its name.
        key: String,
        /// Its value.
        value: Value,
    },
    /// The tool sends an event of its own kind.
    Emitted {
        /// The kind.
        kind: String,
        /// What belongs to it.
        data: Value,
    },
    /// A part of the output.
    Output {
        /// The text.
        text: String,
    },
    /// The result's text was cut.
    Truncated(Truncated),
    /// The end: the tool gave a result.
    Completed {
        /// How the tool is shown.
        display: Arc<Display>,
        /// Where the tool comes from.
        source: Source,
        /// How long it took.
        elapsed_ms: u64,
        /// A short title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Typed data for a screen.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
        /// The attachments, by media type and name.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
    },
    /// The end: the call failed.
    Failed(Ending),
    /// The end: the call was cancelled.
    Aborted(Ending),
    /// The end: the time was up.
    TimedOut(Ending),
    /// Events were lost because the subscriber did not keep up.
    Lost {
        /// How many.
        count: u64,
    },
}

/// What the guard against loops found.
impl From<Finding> for EventKind {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::Fine => Self::Looped { times: 0, cycle: 0, stopped: false },
            Finding::Repeated { times, cycle } => Self::Looped { times, cycle, stopped: false },
            Finding::Stopped { times } => Self::Looped { times, cycle: 1, stopped: true },
        }
    }
}

impl EventKind {
    /// Whether it is the end of a call.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Completed { .. } | Self::Failed(_) | Self::Aborted(_) | Self::TimedOut(_)
        )
    }

    /// Whether a subscriber that does not keep up may lose it.
    const fn may_be_lost(&self) -> bool {
        matches!(
            self,
            Self::Progress { .. }
                | Self::Metadata { .. }
                | Self::Output { .. }
                | Self::Emitted { .. }
        )
    }
}

/// How a call ended that gave no result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Ending {
    /// How the tool is shown.
    pub display: Arc<Display>,
    /// Where the tool comes from.
    pub source: Source,
    /// What kind of failure it was.
    pub error: ErrorKind,
    /// What the model reads.
    pub message: String,
    /// How long it took.
    pub elapsed_ms: u64,
}

impl Ending {
    pub(crate) fn new(
        display: Arc<Display>,
        source: Source,
        error: ErrorKind,
        message: String,
        elapsed: Duration,
    ) -> Self {
        Self { display, source, error, message, elapsed_ms: millis(elapsed) }
    }
}

/// Something that came with a result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Artifact {
    /// The media type.
    pub mime: String,
    /// A name for people.
    pub name: Option<String>,
}

impl Artifact {
    pub(crate) fn new(mime: String, name: Option<String>) -> Self {
        Self { mime, name }
    }
}

pub(crate) fn millis(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Where events go out to their subscribers.
#[derive(Default)]
pub(crate) struct Hub {
    next: AtomicU64,
    open: AtomicUsize,
    closed: AtomicBool,
    queues: Mutex<Vec<Arc<Queue>>>,
}

impl Hub {
    /// Whether anybody listens.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn send(&self, session: &Session, tool: &ToolName, call: &CallId, kind: EventKind) {
        let queues = lock(&self.queues);
        // The number is taken under the lock, so that every subscriber sees them grow.
        let event = ToolEvent {
            seq: self.next.fetch_add(1, Ordering::Relaxed),
            call: call.clone(),
            tool: tool.clone(),
            session: session.id().into(),
            kind,
        };
        for queue in queues.iter() {
            queue.push(event.clone());
        }
    }

    /// Tells of a running call.
    pub(crate) fn tell(&self, cx: &Context, kind: EventKind) {
        self.send(cx.session(), cx.tool(), cx.call(), kind);
    }

    pub(crate) fn subscribe(self: &Arc<Self>) -> Events {
        let queue = Arc::new(Queue::default());
        let mut queues = lock(&self.queues);
        lock(&queue.state).closed = self.is_closed();
        queues.push(Arc::clone(&queue));
        drop(queues);
        self.open.fetch_add(1, Ordering::Relaxed);
        Events { queue, hub: Arc::clone(self) }
    }

    fn unsubscribe(&self, queue: &Arc<Queue>) {
        lock(&self.queues).retain(|other| !Arc::ptr_eq(other, queue));
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether everything has ended.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends every subscription, once what was sent has been read.
    pub(crate) fn close(&self) {
        let queues = lock(&self.queues);
        self.closed.store(true, Ordering::Relaxed);
        for queue in queues.iter() {
            lock(&queue.state).closed = true;
            queue.ready.notify_one();
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("subscribers", &self.open).finish_non_exhaustive()
    }
}

/// Closes the hub when the pipeline goes away.
#[derive(Clone, Debug, Default)]
pub(crate) struct HubOwner(Arc<Owned>);

#[derive(Debug, Default)]
struct Owned(Arc<Hub>);

impl HubOwner {
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.0.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Sink for Hub {
    #[inline]
    fn is_open(&self) -> bool {
        Self::is_open(self)
    }

    fn signal(&self, cx: &Context, signal: Signal) {
        let kind = match signal {
            Signal::Progress { done, total, message } => {
                EventKind::Progress { done, total, message }
            }
            Signal::Metadata { key, value } => EventKind::Metadata { key, value },
            Signal::Emitted { kind, data } => EventKind::Emitted { kind, data },
            Signal::Output { text } => EventKind::Output { text },
        };
        self.send(cx.session(), cx.tool(), cx.call(), kind);
    }
}

/// The events of one subscriber.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    ready: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<ToolEvent>,
    losable: usize,
    closed: bool,
}

impl Queue {
    /// How many events that may be lost are kept for a slow subscriber.
    const ROOM: usize = 1024;

    fn push(&self, event: ToolEvent) {
        lock(&self.state).push(event);
        self.ready.notify_one();
    }

    /// The next event, or whether there will never be another.
    fn next(&self) -> Result<ToolEvent, bool> {
        let mut state = lock(&self.state);
        let closed = state.closed;
        state.pop().ok_or(closed)
    }
}

impl State {
    fn push(&mut self, event: ToolEvent) {
        if !event.kind.may_be_lost() {
            self.events.push_back(event);
        } else if self.losable < Queue::ROOM {
            self.losable += 1;
            self.events.push_back(event);
        } else if let Some(ToolEvent { kind: EventKind::Lost { count }, .. }) =
            self.events.back_mut()
        {
            *count += 1;
        } else {
            // Stands where the loss began, in the place of the first event that is lost.
            self.events.push_back(ToolEvent { kind: EventKind::Lost { count: 1 }, ..event });
        }
    }

    fn pop(&mut self) -> Option<ToolEvent> {
        let event = self.events.pop_front()?;
        if event.kind.may_be_lost() {
            self.losable -= 1;
        }
        Some(event)
    }
}

/// A subscription to the events of a pipeline.
pub struct Events {
    queue: Arc<Queue>,
    hub: Arc<Hub>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("waiting", &lock(&self.queue.state).events.len()).finish()
    }
}

impl Events {
    /// The next event; `None` once the pipeline is gone and everything was read.
    pub async fn recv(&mut self) -> Option<ToolEvent> {
        loop {
            let ready = self.queue.ready.notified();
            tokio::pin!(ready);
            // Registered before looking, so that nothing is missed in between.
            ready.as_mut().enable();
            match self.queue.next() {
                Ok(event) => return Some(event),
                Err(true) => return None,
                Err(false) => ready.await,
            }
        }
    }

    /// The next event, if there is one already.
    pub fn try_recv(&mut self) -> Option<ToolEvent> {
        self.queue.next().ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hub.unsubscribe(&self.queue);
    }
}

/// A lock whose holder panicked still guards whole values: nothing here panics half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
