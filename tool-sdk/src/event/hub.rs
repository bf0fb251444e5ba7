//! Where events go out, and how they come in.
//!
//! A subscriber that does not keep up loses progress, then what happens to calls on their
//! way, and is told how much. It never loses the end of a call that it saw begin, and it
//! never slows a tool down.
//!
//! A subscriber takes all that waits for it at once and reads it from there, so that it
//! rarely meets those who send.
//!
//! Which calls a subscriber saw begin is not written down for each: it saw all that began
//! since it listens, but for those whose beginning it lost.
//!
//! **Invariant:** what is kept for a subscriber is bounded by its [rooms](Class::room), twice,
//! and by how many calls are open at once, whatever it does not read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashSet;
use tokio::sync::Notify;

use super::{About, EventKind, ToolEvent};
use crate::call::CallId;

/// Where events go out to their subscribers.
#[derive(Default)]
pub(crate) struct Hub {
    /// How many listen to everything.
    open: AtomicUsize,
    /// How many listen to what one call says.
    near: AtomicUsize,
    closed: AtomicBool,
    outlets: Mutex<Outlets>,
}

struct Outlets {
    /// The number of the next event.
    next: u64,
    queues: Vec<Queue>,
}

impl Outlets {
    #[inline(always)]
    fn send(&mut self, begun: u64, about: About<'_>, kind: EventKind) -> u64 {
        // The number is taken under the lock, so that every subscriber sees them grow.
        let seq = self.next;
        self.next += 1;
        match &mut *self.queues {
            [queue] if queue.only.is_none() => match queue.has_place_for(&kind, begun) {
                true => {
                    queue.wake();
                    queue.events.push_back(about.event(seq, kind));
                }
                false => queue.lose(about.event(seq, kind)),
            },
            queues => Self::spread(queues, begun, &about.event(seq, kind)),
        }
        seq
    }

    /// Apart, because most events go to one subscriber.
    #[inline(never)]
    fn spread(queues: &mut [Queue], begun: u64, event: &ToolEvent) {
        for queue in queues.iter_mut().filter(|queue| queue.is_about(event)) {
            queue.push(begun, event.clone());
        }
    }
}

/// The first event has the number 1: what began at 0, nobody saw.
impl Default for Outlets {
    fn default() -> Self {
        Self { next: 1, queues: Vec::new() }
    }
}

impl Hub {
    /// Whether anybody listens to everything.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Whether anybody listens to what running tools say.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        self.is_open() || self.near.load(Ordering::Relaxed) > 0
    }

    /// Sends what happened to a call whose beginning has the number `begun`, or 0; gives the
    /// number of this event.
    pub(crate) fn send(&self, begun: u64, about: About<'_>, kind: EventKind) -> u64 {
        lock(&self.outlets).send(begun, about, kind)
    }

    /// Sends that a call was understood and that its tool runs; gives the number of the first.
    pub(crate) fn send_start(&self, about: About<'_>, pending: EventKind) -> u64 {
        let mut outlets = lock(&self.outlets);
        let started = || EventKind::Started { arguments: None };
        let seq = outlets.next;
        if let [queue] = &mut *outlets.queues
            && queue.takes_start()
        {
            queue.wake();
            queue.events.push_back(about.event(seq, pending));
            queue.events.push_back(about.event(seq + 1, started()));
            outlets.next += 2;
        } else {
            outlets.send(0, about, pending);
            outlets.send(seq, about, started());
        }
        seq
    }

    /// Listens to what happens to all calls.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Events {
        self.listen(None)
    }

    /// Listens to what one call says while it runs, until the subscription is dropped. For
    /// those who tell a peer of its call, which is why its other events are not made for them.
    #[cfg(feature = "mcp")]
    pub(crate) fn subscribe_to(self: &Arc<Self>, call: &CallId) -> Events {
        self.listen(Some(call.clone()))
    }

    fn listen(self: &Arc<Self>, only: Option<CallId>) -> Events {
        let bell = Arc::<Bell>::default();
        let mut outlets = lock(&self.outlets);
        let since = outlets.next;
        // Under the lock: whoever hears of a beginning is counted when its end is sent.
        self.listeners(only.as_ref()).fetch_add(1, Ordering::Relaxed);
        outlets.queues.push(Queue::new(Arc::clone(&bell), since, only));
        drop(outlets);
        Events { bell, hub: Arc::clone(self), taken: VecDeque::new() }
    }

    fn unsubscribe(&self, bell: &Arc<Bell>) {
        let mut outlets = lock(&self.outlets);
        let Some(at) = outlets.queues.iter().position(|it| Arc::ptr_eq(&it.bell, bell)) else {
            return;
        };
        let left = outlets.queues.swap_remove(at);
        self.listeners(left.only.as_ref()).fetch_sub(1, Ordering::Relaxed);
    }

    fn listeners(&self, only: Option<&CallId>) -> &AtomicUsize {
        if only.is_some() { &self.near } else { &self.open }
    }

    /// Takes what waits for the subscriber who listens to `bell`; the empty `room` is left in
    /// its place. Says whether a call is open that the subscriber saw begin, or listens to.
    fn take(&self, bell: &Arc<Bell>, room: &mut VecDeque<ToolEvent>) -> bool {
        let mut outlets = lock(&self.outlets);
        let mut queues = outlets.queues.iter_mut();
        let Some(queue) = queues.find(|it| Arc::ptr_eq(&it.bell, bell)) else { return false };
        bell.rung.store(false, Ordering::Relaxed);
        std::mem::swap(&mut queue.events, room);
        queue.is_awaited = room.is_empty();
        queue.kept = [0; Class::COUNT];
        queue.open > 0 || queue.only.is_some()
    }

    /// Whether everything has ended.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends every subscription, once what was sent has been read, and the ends of the calls
    /// that were seen to begin.
    pub(crate) fn close(&self) {
        let outlets = lock(&self.outlets);
        self.closed.store(true, Ordering::Relaxed);
        for queue in &outlets.queues {
            queue.bell.ready.notify_one();
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

/// What a subscriber hears of its queue; also tells whose queue it is.
#[derive(Default)]
struct Bell {
    /// Wakes the subscriber.
    ready: Notify,
    /// Whether something was put into the queue since it was emptied.
    rung: AtomicBool,
}

/// The events of one subscriber.
struct Queue {
    bell: Arc<Bell>,
    events: VecDeque<ToolEvent>,
    /// Whether the subscriber waits for the next event, having found none.
    is_awaited: bool,
    /// How many of the events belong to each class.
    kept: [usize; Class::COUNT],
    /// The number of the first event that there was for it.
    since: u64,
    /// How many calls are open whose beginning was told.
    open: usize,
    /// The open calls whose beginning was lost, by its number.
    lost: HashSet<u64>,
    /// The only call of which anything is taken in: what it says.
    only: Option<CallId>,
}

/// Events of which a subscriber that does not keep up is left with so many.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// What a running tool says of itself.
    Signal,
    /// What happens to a call on its way.
    Step,
    /// The end of a call.
    End,
}

impl Class {
    const COUNT: usize = 3;

    /// The class of an event; a count of what was lost stands where an event would stand.
    #[inline]
    const fn of(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::Lost { .. } => None,
            kind if kind.is_terminal() => Some(Self::End),
            kind if kind.is_signal() => Some(Self::Signal),
            _ => Some(Self::Step),
        }
    }

    /// How many events of the class are kept unread; of ends, how many of calls that the
    /// subscriber did not see begin.
    const fn room(self) -> usize {
        match self {
            Self::Signal => 1 << 10,
            Self::Step => 1 << 14,
            Self::End => 1 << 16,
        }
    }
}

impl Queue {
    fn new(bell: Arc<Bell>, since: u64, only: Option<CallId>) -> Self {
        let (events, is_awaited, kept, open, lost) = Default::default();
        Self { bell, events, is_awaited, kept, since, open, lost, only }
    }

    /// Whether what happened is of interest.
    #[inline]
    fn is_about(&self, event: &ToolEvent) -> bool {
        self.only.as_ref().is_none_or(|only| *only == event.call && event.kind.is_said())
    }

    /// Takes an event in, or counts it as lost.
    fn push(&mut self, begun: u64, event: ToolEvent) {
        if self.has_place_for(&event.kind, begun) {
            self.wake();
            self.events.push_back(event);
        } else {
            self.lose(event);
        }
    }

    /// Takes places for that a call was understood and for that its tool runs, if there are two.
    #[inline(always)]
    fn takes_start(&mut self) -> bool {
        let kept = &mut self.kept[Class::Step as usize];
        let has_room = self.only.is_none() && *kept + 2 <= Class::Step.room();
        if has_room {
            *kept += 2;
            self.open += 1;
        }
        has_room
    }

    /// Wakes whoever waits for the event that is put into its place now.
    #[inline(always)]
    fn wake(&mut self) {
        if self.events.is_empty() {
            self.bell.rung.store(true, Ordering::Release);
            if self.is_awaited {
                self.is_awaited = false;
                self.bell.ready.notify_one();
            }
        }
    }

    /// Takes a place for an event, if there is one.
    #[inline]
    fn has_place_for(&mut self, kind: &EventKind, begun: u64) -> bool {
        let Some(class) = Class::of(kind) else { return true };
        let is_owed = class == Class::End && self.is_owed(begun);
        if self.kept[class as usize] >= class.room() && !is_owed {
            return false;
        }
        self.kept[class as usize] += 1;
        self.open += usize::from(kind.is_beginning());
        true
    }

    /// Counts what is lost where the loss began, in the place of the first event that is.
    #[cold]
    fn lose(&mut self, event: ToolEvent) {
        if event.kind.is_beginning() {
            self.lost.insert(event.seq);
        }
        self.wake();
        match self.events.back_mut() {
            Some(ToolEvent { kind: EventKind::Lost { count }, .. }) => *count += 1,
            _ => self.events.push_back(event.with(EventKind::Lost { count: 1 })),
        }
    }

    /// Whether an end is that of a call that the subscriber saw begin, at the event `begun`.
    #[inline]
    fn is_owed(&mut self, begun: u64) -> bool {
        let is_owed = begun >= self.since && (self.lost.is_empty() || !self.lost.remove(&begun));
        self.open -= usize::from(is_owed);
        is_owed
    }
}

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
    /// What was taken and not read.
    taken: VecDeque<ToolEvent>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("taken", &self.taken.len()).finish_non_exhaustive()
    }
}

impl Events {
    /// The next event; `None` once the pipeline is closed or gone, everything was read, and
    /// every call has ended whose beginning was read.
    pub async fn recv(&mut self) -> Option<ToolEvent> {
        let Self { bell, hub, taken } = self;
        loop {
            if let Some(event) = taken.pop_front() {
                return Some(event);
            }
            let woken = bell.ready.notified();
            tokio::pin!(woken);
            // Registered before looking, so that nothing is missed in between.
            woken.as_mut().enable();
            // In this order, since no call begins after the end.
            let closed = hub.is_closed();
            let is_owed_an_end = hub.take(bell, taken);
            if taken.is_empty() {
                if closed && !is_owed_an_end {
                    return None;
                }
                woken.await;
            }
        }
    }

    /// The next event, if there is one already.
    #[inline]
    pub fn try_recv(&mut self) -> Option<ToolEvent> {
        if self.taken.is_empty() && self.bell.rung.load(Ordering::Acquire) {
            self.hub.take(&self.bell, &mut self.taken);
        }
        self.taken.pop_front()
    }
}

#[cfg(feature = "mcp")]
impl Events {
    /// Whether something that is `wanted` waits; all of it goes on waiting.
    pub(crate) fn has(&mut self, wanted: impl Fn(&EventKind) -> bool) -> bool {
        if self.bell.rung.load(Ordering::Acquire) {
            let mut more = VecDeque::new();
            self.hub.take(&self.bell, &mut more);
            self.taken.append(&mut more);
        }
        self.taken.iter().any(|event| wanted(&event.kind))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hub.unsubscribe(&self.bell);
    }
}

/// A lock whose holder panicked still guards whole values: nothing here panics half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
