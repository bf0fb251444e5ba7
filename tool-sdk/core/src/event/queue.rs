//! The queue of one subscriber, and what it drops when the subscriber falls behind.
//!
//! Signals of running tools are dropped first, then the steps of calls; a `lost` event counts the
//! dropped events. The end of a call whose start the subscriber saw is never dropped. A lossless
//! queue drops nothing; while it is full, the pipeline holds its calls back.
//!
//! **Invariant:** the length of a queue is bounded by the limits of the classes and the number
//! of open calls; that of a lossless queue by its capacity and what the calls that already run
//! emit before their tools wait for something.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;

use super::{EventKind, ToolEvent};
use crate::call::CallId;

/// The unread events of one subscriber.
pub(super) struct EventQueue {
    /// Wakes the subscriber; also identifies the queue.
    pub(super) wakeup: Arc<Notify>,
    events: VecDeque<ToolEvent>,
    /// The number of events of each class.
    counts: [usize; EventClass::COUNT],
    /// The number of the first event after the subscription.
    first_seq: u64,
    /// The number of open calls whose start was queued.
    open_calls: usize,
    /// The sequence numbers of dropped pending events, of calls that are still open.
    dropped_pending: HashSet<u64>,
    /// Which events the subscriber wants.
    pub(super) filter: EventFilter,
}

/// Which events a subscriber wants.
pub(super) enum EventFilter {
    /// The events of all calls.
    AllCalls,
    /// The events that a function selects, none of which may be lost.
    Lossless {
        /// How many unread events make the queue full.
        capacity: usize,
        is_wanted: Box<dyn Fn(&ToolEvent) -> bool + Send + Sync>,
    },
    /// The events of one call.
    OneCall(CallId),
    /// What the tool of one call reports while it runs, without the steps of the call.
    Messages(CallId),
}

impl EventFilter {
    fn accepts(&self, event: &ToolEvent) -> bool {
        match self {
            Self::AllCalls => true,
            Self::Lossless { is_wanted, .. } => is_wanted(event),
            Self::OneCall(call) => *call == event.call,
            Self::Messages(call) => *call == event.call && event.kind.is_message(),
        }
    }

    /// Whether the subscriber wants the steps of calls.
    pub(super) const fn wants_steps(&self) -> bool {
        !matches!(self, Self::Messages(_))
    }
}

/// The class of an event; each class has its own limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EventClass {
    /// A signal of a running tool.
    Signal,
    /// A step of a call.
    Step,
    /// The end of a call.
    End,
}

impl EventClass {
    const COUNT: usize = 3;

    /// Returns the class of an event; a count of lost events has none.
    const fn from_kind(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::Lost { .. } => None,
            kind if kind.is_terminal() => Some(Self::End),
            kind if kind.is_signal() => Some(Self::Signal),
            _ => Some(Self::Step),
        }
    }

    /// The maximum number of unread events of the class. For ends, only those of calls whose
    /// start the subscriber did not see count.
    const fn limit(self) -> usize {
        match self {
            Self::Signal => 1 << 10,
            Self::Step => 1 << 14,
            Self::End => 1 << 16,
        }
    }
}

impl EventQueue {
    pub(super) fn new(wakeup: Arc<Notify>, first_seq: u64, filter: EventFilter) -> Self {
        Self {
            wakeup,
            events: VecDeque::new(),
            counts: [0; EventClass::COUNT],
            first_seq,
            open_calls: 0,
            dropped_pending: HashSet::new(),
            filter,
        }
    }

    /// Whether the subscriber wants the event.
    pub(super) fn wants(&self, event: &ToolEvent) -> bool {
        self.filter.accepts(event)
    }

    /// Queues an event of a call whose pending event has the number `pending`, or counts it as
    /// lost, and wakes the subscriber.
    pub(super) fn push(&mut self, pending: u64, event: ToolEvent) {
        if let EventKind::Lost { count } = event.kind {
            return self.count_as_lost(event, count);
        }
        if let Some(class) = EventClass::from_kind(&event.kind) {
            let is_lossless = matches!(self.filter, EventFilter::Lossless { .. });
            // Such a queue need not have the starts of calls.
            let is_owed = !is_lossless && class == EventClass::End && self.close_call(pending);
            let count = &mut self.counts[class as usize];
            if *count >= class.limit() && !is_owed && !is_lossless {
                return self.count_as_lost(event, 1);
            }
            *count += 1;
            self.open_calls += usize::from(event.kind.starts_call() && !is_lossless);
        }
        self.events.push_back(event);
        self.wakeup.notify_one();
    }

    /// Records the end of a call; returns whether the subscriber saw its start.
    fn close_call(&mut self, pending: u64) -> bool {
        let was_seen = pending >= self.first_seq && !self.dropped_pending.remove(&pending);
        self.open_calls -= usize::from(was_seen);
        was_seen
    }

    /// Counts events as lost, at the position where the loss began.
    fn count_as_lost(&mut self, mut event: ToolEvent, lost: u64) {
        if event.kind.starts_call() {
            self.dropped_pending.insert(event.seq);
        }
        if let Some(ToolEvent { kind: EventKind::Lost { count }, .. }) = self.events.back_mut() {
            *count += lost;
        } else {
            event.kind = EventKind::Lost { count: lost };
            self.events.push_back(event);
            self.wakeup.notify_one();
        }
    }

    pub(super) fn pop(&mut self) -> Option<ToolEvent> {
        let event = self.events.pop_front()?;
        if let Some(class) = EventClass::from_kind(&event.kind) {
            self.counts[class as usize] -= 1;
        }
        Some(event)
    }

    /// Whether the queue is lossless and holds as many events as it should.
    pub(super) fn is_full(&self) -> bool {
        match self.filter {
            EventFilter::Lossless { capacity, .. } => self.events.len() >= capacity,
            _ => false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether more events may follow after the pipeline is closed: the end of an open call.
    pub(super) fn expects_more(&self) -> bool {
        self.open_calls > 0 || !self.filter.wants_steps()
    }

    pub(super) fn contains(&self, wanted: impl Fn(&EventKind) -> bool) -> bool {
        self.events.iter().any(|event| wanted(&event.kind))
    }
}
