//! Publishes events to the subscribers.
//!
//! Sequence numbers are given and events queued under one lock, so that every subscriber sees
//! the numbers grow.
//!
//! **Invariant:** publishing never waits for a subscriber. Only the pipeline waits, before it goes
//! on with a call, while a lossless subscriber has not read enough.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::queue::{EventFilter, EventQueue};
use super::{EventCall, EventKind, Subscription, ToolEvent};
use crate::call::CallId;

/// Where events are published.
#[derive(Default)]
pub(crate) struct EventBus {
    /// The number of subscribers to the steps of calls.
    subscribers: AtomicUsize,
    /// The number of subscribers to what tools report while they run, and nothing else.
    message_subscribers: AtomicUsize,
    /// The number of lossless queues that are full.
    full_queues: AtomicUsize,
    /// Wakes the calls that wait until no lossless queue is full.
    room: Notify,
    closed: AtomicBool,
    queues: Mutex<Queues>,
}

struct Queues {
    /// The number of the next event. Numbers start at 1; 0 means that there was no subscriber.
    next_seq: u64,
    queues: Vec<EventQueue>,
}

impl Default for Queues {
    fn default() -> Self {
        Self { next_seq: 1, queues: Vec::new() }
    }
}

impl Queues {
    fn find(&mut self, wakeup: &Arc<Notify>) -> Option<&mut EventQueue> {
        self.queues.iter_mut().find(|queue| Arc::ptr_eq(&queue.wakeup, wakeup))
    }
}

impl EventBus {
    /// Whether there is a subscriber to the steps of calls.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.subscribers.load(Ordering::Relaxed) > 0
    }

    /// Whether there is a subscriber to signals of running tools.
    pub(crate) fn has_signal_subscribers(&self) -> bool {
        self.has_subscribers() || self.message_subscribers.load(Ordering::Relaxed) > 0
    }

    /// Publishes an event of a call whose pending event has the number `pending`, or 0; returns
    /// the number of this event.
    pub(crate) fn publish(&self, pending: u64, about: EventCall<'_>, kind: EventKind) -> u64 {
        let mut queues = self.lock_queues();
        let seq = queues.next_seq;
        queues.next_seq += 1;
        let event = ToolEvent {
            seq,
            call: about.origin.id.clone(),
            parent: about.origin.parent_id().cloned(),
            message: about.origin.message.clone(),
            tool: Arc::clone(about.tool),
            session: Arc::clone(about.session.shared_id()),
            ids: Arc::clone(about.session.shared_ids()),
            kind,
        };
        for queue in queues.queues.iter_mut().filter(|queue| queue.wants(&event)) {
            let was_full = queue.is_full();
            queue.push(pending, event.clone());
            if queue.is_full() && !was_full {
                self.full_queues.fetch_add(1, Ordering::Relaxed);
            }
        }
        seq
    }

    /// Whether a lossless subscriber has to read before calls go on.
    pub(crate) fn has_full_queue(&self) -> bool {
        self.full_queues.load(Ordering::Relaxed) > 0 && !self.is_closed()
    }

    /// Waits until every lossless subscriber has read enough, or the pipeline is closed.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let mut room = pin!(self.room.notified());
            // What happens from here on wakes this call.
            room.as_mut().enable();
            if !self.has_full_queue() {
                return;
            }
            room.await;
        }
    }

    /// Records that a lossless queue is full no more.
    fn count_room(&self) {
        self.full_queues.fetch_sub(1, Ordering::Relaxed);
        self.room.notify_waiters();
    }

    /// Returns the number of the newest event; 0 before the first one.
    pub(crate) fn last_seq(&self) -> u64 {
        self.lock_queues().next_seq - 1
    }

    /// Subscribes to what happens to all calls.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscription {
        self.add_subscriber(EventFilter::AllCalls)
    }

    /// Subscribes to the events that `is_wanted` selects, and loses none of them.
    pub(crate) fn subscribe_lossless(
        self: &Arc<Self>,
        capacity: usize,
        is_wanted: impl Fn(&ToolEvent) -> bool + Send + Sync + 'static,
    ) -> Subscription {
        let is_wanted = Box::new(is_wanted);
        self.add_subscriber(EventFilter::Lossless { capacity: capacity.max(1), is_wanted })
    }

    /// Subscribes to what happens to one call, until the subscription is dropped.
    pub(crate) fn subscribe_to_call(self: &Arc<Self>, call: &CallId) -> Subscription {
        self.add_subscriber(EventFilter::OneCall(call.clone()))
    }

    /// Subscribes to the signals of one call, until the subscription is dropped.
    pub(crate) fn subscribe_to(self: &Arc<Self>, call: &CallId) -> Subscription {
        self.add_subscriber(EventFilter::Messages(call.clone()))
    }

    fn add_subscriber(self: &Arc<Self>, filter: EventFilter) -> Subscription {
        let wakeup = Arc::<Notify>::default();
        let mut queues = self.lock_queues();
        self.subscriber_counter(&filter).fetch_add(1, Ordering::Relaxed);
        let first_seq = queues.next_seq;
        queues.queues.push(EventQueue::new(Arc::clone(&wakeup), first_seq, filter));
        drop(queues);
        Subscription::new(wakeup, Arc::clone(self))
    }

    pub(super) fn unsubscribe(&self, wakeup: &Arc<Notify>) {
        let mut queues = self.lock_queues();
        let position = queues.queues.iter().position(|queue| Arc::ptr_eq(&queue.wakeup, wakeup));
        if let Some(position) = position {
            let queue = queues.queues.swap_remove(position);
            self.subscriber_counter(&queue.filter).fetch_sub(1, Ordering::Relaxed);
            if queue.is_full() {
                self.count_room();
            }
        }
    }

    fn subscriber_counter(&self, filter: &EventFilter) -> &AtomicUsize {
        if filter.wants_steps() { &self.subscribers } else { &self.message_subscribers }
    }

    /// Takes the next event of a subscriber.
    pub(super) fn pop_event(&self, wakeup: &Arc<Notify>) -> Option<ToolEvent> {
        let mut queues = self.lock_queues();
        let queue = queues.find(wakeup)?;
        let was_full = queue.is_full();
        let event = queue.pop();
        if was_full && !queue.is_full() {
            self.count_room();
        }
        event
    }

    /// Whether an event of this kind waits for a subscriber.
    pub(super) fn contains_event(
        &self,
        wakeup: &Arc<Notify>,
        wanted: impl Fn(&EventKind) -> bool,
    ) -> bool {
        self.lock_queues().find(wakeup).is_some_and(|queue| queue.contains(wanted))
    }

    /// Whether the subscriber has an event, or will never get one again.
    pub(super) fn is_ready(&self, wakeup: &Arc<Notify>) -> bool {
        let is_closed = self.is_closed();
        let mut queues = self.lock_queues();
        let Some(queue) = queues.find(wakeup) else { return true };
        !queue.is_empty() || is_closed && !queue.expects_more()
    }

    /// Whether the pipeline is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends every subscription, after the subscriber has read its events and the ends of the
    /// calls that it saw start.
    pub(crate) fn close(&self) {
        let queues = self.lock_queues();
        self.closed.store(true, Ordering::Relaxed);
        for queue in &queues.queues {
            queue.wakeup.notify_one();
        }
        self.room.notify_waiters();
    }

    /// A poisoned lock still guards whole queues: no operation panics half-way.
    fn lock_queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus").field("subscribers", &self.subscribers).finish_non_exhaustive()
    }
}

/// Closes the bus when the last pipeline that owns it is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventBusOwner(Arc<CloseOnDrop>);

#[derive(Debug, Default)]
struct CloseOnDrop(Arc<EventBus>);

impl EventBusOwner {
    pub(crate) fn bus(&self) -> &Arc<EventBus> {
        &self.0.0
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
