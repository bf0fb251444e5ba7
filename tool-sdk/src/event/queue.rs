//! What waits for one subscriber.
//!
//! A subscriber that does not keep up loses progress, then what happens to calls on their
//! way, and is told how much. It never loses the end of a call that it saw begin.
//!
//! Which calls a subscriber saw begin is not written down for each: it saw all that began
//! since it listens, but for those whose beginning it lost.
//!
//! **Invariant:** what is kept for a subscriber is bounded by its rooms, twice, and by how many
//! calls are open at once, whatever it does not read.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::HashSet;
use tokio::sync::Notify;

use super::row::{Place, Row};
use super::{About, EventKind, ToolEvent};
use crate::call::CallId;

/// What a subscriber hears of its queue; also tells whose queue it is.
#[derive(Default)]
pub(super) struct Bell {
    /// Wakes the subscriber.
    pub(super) ready: Notify,
    /// Whether something is in the queue.
    pub(super) rung: AtomicBool,
}

/// The events of one subscriber.
pub(super) struct Queue {
    pub(super) bell: Arc<Bell>,
    events: Row,
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
    pub(super) only: Option<CallId>,
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
    pub(super) fn new(bell: Arc<Bell>, since: u64, only: Option<CallId>) -> Self {
        let (events, is_awaited, kept, open, lost) = Default::default();
        Self { bell, events, is_awaited, kept, since, open, lost, only }
    }

    /// Whether something that happens to a call is of interest.
    #[inline]
    pub(super) fn is_about(&self, call: &CallId, kind: &EventKind) -> bool {
        self.only.as_ref().is_none_or(|only| only == call && kind.is_said())
    }

    /// Takes an event in, or counts it as lost.
    #[inline(always)]
    pub(super) fn push(&mut self, begun: u64, seq: u64, about: About<'_>, kind: EventKind) {
        if self.has_place_for(&kind, begun) {
            self.next(about).write(seq, kind);
        } else {
            self.lose(seq, about, &kind);
        }
    }

    /// The place of an event that there is a place for; whoever waits for it is woken.
    #[inline(always)]
    pub(super) fn next(&mut self, about: About<'_>) -> Place<'_> {
        self.wake();
        self.events.next(about)
    }

    /// The place of an event that comes right behind another.
    #[inline(always)]
    pub(super) fn and_next(&mut self, about: About<'_>) -> Place<'_> {
        self.events.next(about)
    }

    /// Takes places for that a call was understood and for that its tool runs, if there are two.
    #[inline(always)]
    pub(super) fn takes_start(&mut self) -> bool {
        let kept = &mut self.kept[Class::Step as usize];
        let has_room = self.only.is_none() && *kept + 2 <= Class::Step.room();
        if has_room {
            *kept += 2;
            self.open += 1;
        }
        has_room
    }

    /// Takes a place for the end of a call that began at the event `begun`, if it is sure that
    /// this was seen.
    #[inline(always)]
    pub(super) fn takes_end(&mut self, begun: u64) -> bool {
        let is_owed = self.only.is_none() && self.lost.is_empty() && begun >= self.since;
        if is_owed {
            self.kept[Class::End as usize] += 1;
            self.open -= 1;
        }
        is_owed
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
    fn lose(&mut self, seq: u64, about: About<'_>, kind: &EventKind) {
        if kind.is_beginning() {
            self.lost.insert(seq);
        }
        match self.events.last_mut() {
            Some(ToolEvent { kind: EventKind::Lost { count }, .. }) => *count += 1,
            _ => self.next(about).write(seq, EventKind::Lost { count: 1 }),
        }
    }

    /// Whether an end is that of a call that the subscriber saw begin, at the event `begun`.
    #[inline]
    fn is_owed(&mut self, begun: u64) -> bool {
        let is_owed = begun >= self.since && (self.lost.is_empty() || !self.lost.remove(&begun));
        self.open -= usize::from(is_owed);
        is_owed
    }

    /// Leaves the empty `room` in the place of the events.
    #[inline]
    pub(super) fn empty_into(&mut self, room: &mut Row) {
        self.bell.rung.store(false, Ordering::Relaxed);
        mem::swap(&mut self.events, room);
        self.kept = [0; Class::COUNT];
    }

    /// Whether something waits for the subscriber, who waits for it when nothing does; and
    /// whether a call is open that the subscriber saw begin, or listens to.
    pub(super) fn look(&mut self) -> (bool, bool) {
        self.is_awaited = self.events.is_empty();
        (!self.is_awaited, self.open > 0 || self.only.is_some())
    }
}
