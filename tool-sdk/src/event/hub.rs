//! Where events go out, and how they come in.
//!
//! A subscriber that does not keep up loses progress, then what happens to calls on their
//! way, and is told how much. It never loses the end of a call that it saw begin, and it
//! never slows a tool down.
//!
//! **Invariant:** what is kept for a subscriber is bounded by its [rooms](Class::room) and by
//! how many calls are open at once, whatever it does not read.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{EventKind, ToolEvent};
use crate::call::CallId;
use crate::context::Session;
use crate::name::ToolName;

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
        let Some((last, others)) = queues.split_last() else { return };
        // The number is taken under the lock, so that every subscriber sees them grow.
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let event = |kind: EventKind| {
            let (call, tool, session) = (call.clone(), tool.clone(), session.shared_id());
            ToolEvent { seq, call, tool, session, severity: kind.severity(), kind }
        };
        for queue in others {
            queue.push(kind.clone(), call, event);
        }
        last.push(kind, call, event);
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

/// The events of one subscriber.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    ready: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<ToolEvent>,
    /// How many of the events belong to each class.
    kept: [usize; Class::COUNT],
    /// The open calls whose beginning was lost.
    untold: HashSet<CallId>,
    closed: bool,
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
    /// Takes an event in, which `event` makes of its kind: an event is large, and is made
    /// where it stays.
    #[inline]
    fn push(&self, kind: EventKind, call: &CallId, event: impl FnOnce(EventKind) -> ToolEvent) {
        let mut state = lock(&self.state);
        let was_empty = state.events.is_empty();
        if state.has_place_for(&kind, call) {
            state.events.push_back(event(kind));
        } else if !state.is_losing() {
            state.events.push_back(event(EventKind::Lost { count: 1 }));
        }
        drop(state);
        // Whoever waits has seen an empty queue.
        if was_empty {
            self.ready.notify_one();
        }
    }

    /// The next event, if there is one.
    #[inline]
    fn next(&self) -> Option<ToolEvent> {
        lock(&self.state).pop()
    }

    /// Whether there will never be another event once these are read.
    fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }
}

impl State {
    /// Takes a place for an event, if there is one.
    #[inline]
    fn has_place_for(&mut self, kind: &EventKind, call: &CallId) -> bool {
        let Some(class) = Class::of(kind) else { return true };
        let is_owed = class == Class::End && self.is_owed(kind, call);
        if self.kept[class as usize] < class.room() || is_owed {
            self.kept[class as usize] += 1;
            return true;
        }
        if matches!(kind, EventKind::Pending { .. }) {
            self.untold.insert(call.clone());
        }
        false
    }

    /// Counts what is lost where the loss began, in the place of the first event that is;
    /// says whether there is one.
    #[cold]
    fn is_losing(&mut self) -> bool {
        match self.events.back_mut() {
            Some(ToolEvent { kind: EventKind::Lost { count }, .. }) => {
                *count += 1;
                true
            }
            _ => false,
        }
    }

    /// Whether the end is that of a call that the subscriber saw begin.
    #[inline]
    fn is_owed(&mut self, end: &EventKind, call: &CallId) -> bool {
        let is_untold = !self.untold.is_empty() && self.untold.remove(call);
        end.has_beginning() && !is_untold
    }

    #[inline]
    fn pop(&mut self) -> Option<ToolEvent> {
        let event = self.events.pop_front()?;
        if let Some(class) = Class::of(&event.kind) {
            self.kept[class as usize] -= 1;
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
            // In this order, since nothing comes after the end.
            let closed = self.queue.is_closed();
            if let Some(event) = self.queue.next() {
                return Some(event);
            }
            if closed {
                return None;
            }
            ready.await;
        }
    }

    /// The next event, if there is one already.
    pub fn try_recv(&mut self) -> Option<ToolEvent> {
        self.queue.next()
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
