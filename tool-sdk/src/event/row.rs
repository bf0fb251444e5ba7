//! Events that stand one behind the other, in places that are used again.
//!
//! Most calls are like the one before: of the same session, and often of the same tool. So what
//! was read leaves its place with the names in it, and who comes next writes what is new. That
//! is less than to make an event elsewhere and to move it, and nothing that is shared has to be
//! counted.
//!
//! **Invariant:** a place that is free holds on to nothing that has to be dropped but the names and the id
//! of a call, and few are kept.

use std::mem;
use std::sync::Arc;

use super::{About, EventKind, ToolEvent};

/// Events that stand one behind the other.
#[derive(Default)]
pub(super) struct Row {
    /// The places: first those that are taken, then those that are free.
    places: Vec<ToolEvent>,
    taken: usize,
}

impl Row {
    /// What may stand in a place that is free.
    const NOTHING: EventKind = EventKind::Lost { count: 0 };
    /// How many places are kept for those who come.
    const KEPT: usize = 64;

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    #[inline]
    pub(super) fn events(&self) -> &[ToolEvent] {
        &self.places[..self.taken]
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut ToolEvent> {
        self.places[..self.taken].last_mut()
    }

    /// The place of the next event, with the names of the call in it.
    #[inline(always)]
    pub(super) fn next(&mut self, about: About<'_>) -> Place<'_> {
        let at = self.taken;
        self.taken += 1;
        let is_named = self.places.get(at).is_some_and(|place| about.is_named_in(place));
        let event = if is_named { &mut self.places[at] } else { self.name(at, about) };
        event.call.set(about.call);
        Place(event)
    }

    /// Writes the names of a call into the next place. Apart, because most calls are like the
    /// one before.
    #[cold]
    #[inline(never)]
    fn name(&mut self, at: usize, about: About<'_>) -> &mut ToolEvent {
        let event = about.event(0, Self::NOTHING);
        if at < self.places.len() {
            self.places[at] = event;
        } else {
            self.places.push(event);
        }
        &mut self.places[at]
    }

    /// Takes an event out of its place.
    pub(super) fn take(&mut self, at: usize) -> Option<ToolEvent> {
        let event = self.places[..self.taken].get_mut(at)?;
        let kind = mem::replace(&mut event.kind, Self::NOTHING);
        let (call, tool) = (event.call.clone(), Arc::clone(&event.tool));
        Some(ToolEvent { seq: event.seq, call, tool, session: Arc::clone(&event.session), kind })
    }

    /// Leaves all places free.
    #[inline]
    pub(super) fn clear(&mut self) {
        for event in &mut self.places[..self.taken] {
            if !event.kind.is_plain() {
                event.kind = Self::NOTHING;
            }
        }
        if self.places.len() > Self::KEPT {
            self.places.truncate(Self::KEPT);
        }
        self.taken = 0;
    }

    /// Puts the events of another row behind those of this one.
    #[cfg(feature = "mcp")]
    pub(super) fn append(&mut self, mut other: Self) {
        for row in [&mut *self, &mut other] {
            row.places.truncate(row.taken);
        }
        self.taken += other.taken;
        self.places.append(&mut other.places);
    }
}

/// The place of an event that is still to be written.
pub(super) struct Place<'r>(&'r mut ToolEvent);

impl Place<'_> {
    #[inline(always)]
    pub(super) fn write(self, seq: u64, kind: EventKind) {
        self.0.seq = seq;
        // What stood there is plain, so there is nothing to drop.
        debug_assert!(self.0.kind.is_plain() || matches!(self.0.kind, EventKind::Lost { .. }));
        mem::forget(mem::replace(&mut self.0.kind, kind));
    }
}
