//! Where events go out.
//!
//! Every number is given, and every subscriber told, under one lock. What goes to one
//! subscriber, as most events do, is written where it waits for it.
//!
//! **Invariant:** nobody who sends waits for anybody who listens.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::queue::{Bell, Queue};
use super::row::Row;
use super::{About, Arguments, EventKind, Events};
use crate::call::{CallId, Note};

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
    /// The number of the next event. It is taken under the lock, so that every subscriber sees
    /// them grow.
    #[inline(always)]
    fn number(&mut self) -> u64 {
        let seq = self.next;
        self.next += 1;
        seq
    }

    /// Sends an event to everybody who wants it.
    #[inline(never)]
    fn spread(&mut self, begun: u64, seq: u64, about: About<'_>, kind: &EventKind) {
        for queue in self.queues.iter_mut().filter(|queue| queue.is_about(about.call, kind)) {
            queue.push(begun, seq, about, kind.clone());
        }
    }

    fn queue_of(&mut self, bell: &Arc<Bell>) -> Option<&mut Queue> {
        self.queues.iter_mut().find(|it| Arc::ptr_eq(&it.bell, bell))
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
        let mut outlets = lock(&self.outlets);
        let seq = outlets.number();
        match &mut *outlets.queues {
            [queue] if queue.only.is_none() => queue.push(begun, seq, about, kind),
            _ => outlets.spread(begun, seq, about, &kind),
        }
        seq
    }

    /// Sends that a call was understood and that its tool runs; gives the number of the first.
    #[inline(always)]
    pub(crate) fn send_start(
        &self,
        about: About<'_>,
        text: &str,
        long: Option<Arc<str>>,
        summary: Option<String>,
        notes: Box<[Note]>,
    ) -> u64 {
        let mut outlets = lock(&self.outlets);
        let (seq, next) = (outlets.number(), outlets.number());
        if let [queue] = &mut *outlets.queues
            && queue.takes_start()
        {
            let place = queue.next(about);
            let arguments = Arguments::kept(text, long);
            place.write(seq, EventKind::Pending { arguments, summary, notes });
            queue.and_next(about).write(next, EventKind::Started { arguments: None });
        } else {
            let arguments = Arguments::kept(text, long);
            let pending = EventKind::Pending { arguments, summary, notes };
            outlets.spread(0, seq, about, &pending);
            outlets.spread(seq, next, about, &EventKind::Started { arguments: None });
        }
        seq
    }

    /// Sends that a call has ended whose result has nothing beside it.
    #[inline(always)]
    pub(crate) fn send_bare_end(&self, begun: u64, about: About<'_>, elapsed_ms: u64) {
        let mut outlets = lock(&self.outlets);
        let seq = outlets.number();
        if let [queue] = &mut *outlets.queues
            && queue.takes_end(begun)
        {
            queue.next(about).write(seq, EventKind::completed(elapsed_ms));
        } else {
            outlets.spread(begun, seq, about, &EventKind::completed(elapsed_ms));
        }
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
        Events::new(bell, Arc::clone(self))
    }

    pub(super) fn unsubscribe(&self, bell: &Arc<Bell>) {
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
    /// its place.
    pub(super) fn take(&self, bell: &Arc<Bell>, room: &mut Row) {
        if let Some(queue) = lock(&self.outlets).queue_of(bell) {
            queue.empty_into(room);
        }
    }

    /// Whether something waits for the subscriber who listens to `bell`, and whether more may
    /// come once everything has ended.
    pub(super) fn look(&self, bell: &Arc<Bell>) -> (bool, bool) {
        lock(&self.outlets).queue_of(bell).map_or((false, false), Queue::look)
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

/// A lock whose holder panicked still guards whole values: nothing here panics half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
