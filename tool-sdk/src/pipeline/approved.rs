//! What was approved before of a call that is judged, looked up once for all that it touches.
//!
//! A call may touch as much as there are approvals, so nothing here goes through all of these for
//! each of its subjects.

use std::cell::{OnceCell, RefCell};

use super::decide::grantee;
use super::frame::Frame;
use crate::permission::{Grant, Granted, Loaded};
use crate::tool::{Prepared, Subject};

/// The approvals that may cover what a call touches, as they are at one moment.
pub(super) struct Approved<'a> {
    frame: &'a Frame<'a>,
    prepared: &'a dyn Prepared,
    /// What is taken for granted beside them.
    assumed: &'a [Grant],
    stored: OnceCell<Option<Loaded>>,
    /// One for each permission under which something is judged.
    known: RefCell<Vec<Known>>,
}

/// What was granted under one permission.
struct Known {
    permission: Option<String>,
    granted: Granted,
    /// What the tool says of that, where it judges patterns on its own.
    by_tool: OnceCell<Option<bool>>,
}

impl<'a> Approved<'a> {
    /// Those for what `prepared` touches, and what is `assumed` to be granted as well.
    pub(super) fn new(
        frame: &'a Frame<'a>,
        prepared: &'a dyn Prepared,
        assumed: &'a [Grant],
    ) -> Self {
        Self { frame, prepared, assumed, stored: OnceCell::new(), known: RefCell::default() }
    }

    /// Whether somebody approved of `subject`: in this session, or for always.
    pub(super) fn covers(&self, subject: &Subject) -> bool {
        let mut known = self.known.borrow_mut();
        let is_its = |known: &Known| known.permission.as_deref() == subject.permission();
        let at = known.iter().position(is_its).unwrap_or_else(|| {
            known.push(self.known_of(subject));
            known.len() - 1
        });
        let Known { granted, by_tool, .. } = &known[at];
        // Of what is opaque nobody knows what a pattern would cover, but one for everything.
        let is_judged = !subject.is_opaque();
        let by_tool = || *by_tool.get_or_init(|| covered_by_any(self.prepared, granted));
        // The tool knows better than plain matching what a pattern covers.
        is_judged.then(by_tool).flatten().unwrap_or_else(|| granted.covers(subject))
    }

    fn known_of(&self, subject: &Subject) -> Known {
        let frame = self.frame;
        let to = grantee(frame.definition, subject);
        let stored = self.stored.get_or_init(|| {
            let stored = frame.core.stored(frame.session);
            if let Some(warning) = stored.as_ref().and_then(|stored| stored.warning.clone()) {
                frame.core.warn(frame.session, &frame.definition.name, frame.id, warning);
            }
            stored
        });
        let mut patterns = frame.core.kept(frame.session).approvals.patterns(&to);
        patterns.extend(stored.iter().flat_map(|stored| stored.patterns(&to)));
        let assumed = self.assumed.iter().filter(|grant| grant.to == to);
        patterns.extend(assumed.map(|grant| grant.pattern.clone()));
        let permission = subject.permission().map(str::to_owned);
        Known { permission, granted: Granted::new(patterns), by_tool: OnceCell::new() }
    }
}

/// Whether the tool says that one of the patterns covers the call; nothing where it has nothing to
/// say of any.
fn covered_by_any(prepared: &dyn Prepared, granted: &Granted) -> Option<bool> {
    let mut is_said = None;
    for pattern in granted.patterns() {
        match prepared.covered_by(pattern.as_str()) {
            Some(true) => return Some(true),
            said => is_said = is_said.or(said),
        }
    }
    is_said
}
