//! Tracks incomplete input that was typed into a terminal: an unterminated line, quote or
//! heredoc changes the meaning of the text that is typed next.
//!
//! A call is authorized based on the pending input, and other calls may type in the meantime. So
//! a snapshot of the pending input is kept for each call, and a call whose snapshot is outdated
//! is rejected.
//!
//! **Invariant:** nothing here depends on the program that reads the input: the caller passes a
//! callback that finds where the pending part starts.

use std::collections::VecDeque;

/// A callback that returns the offset in a text at which the pending input starts.
pub(super) type FindPendingStart<'a> = &'a (dyn Fn(&str) -> usize + Sync);

/// How many snapshots are kept of calls that have not typed yet.
const MAX_SNAPSHOTS: usize = 64;

/// The pending input of a terminal, and the snapshots by which calls were authorized.
#[derive(Debug, Default)]
pub(super) struct PtyInput {
    bytes: Vec<u8>,
    /// The snapshot of each call; `None` when the input changed while the call was authorized.
    snapshots: VecDeque<(Box<str>, Option<InputSnapshot>)>,
    /// Whether a snapshot was evicted before its call typed.
    has_evicted: bool,
    /// Whether several programs may have read parts of the input. Then only the last line counts
    /// as pending, and the text before it is unknown.
    is_shared: bool,
}

/// The pending input, and whether the text before it is unknown.
type InputSnapshot = (String, bool);

impl PtyInput {
    pub(super) fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the pending input and stores it as the snapshot of `call`.
    pub(super) fn snapshot_for(&mut self, call: &str, open_from: FindPendingStart<'_>) -> String {
        let now = (self.pending_text(open_from), self.is_shared);
        match self.snapshots.iter_mut().find(|(seer, _)| **seer == *call) {
            Some((_, seen)) if seen.as_ref() == Some(&now) => {}
            Some((_, seen)) => *seen = None,
            None => {
                self.snapshots.push_back((call.into(), Some(now.clone())));
                self.has_evicted |=
                    self.snapshots.len() > MAX_SNAPSHOTS && self.snapshots.pop_front().is_some();
            }
        }
        now.0
    }

    /// Returns whether the pending input still equals the snapshot of `call`, if there is one, and
    /// removes the snapshot.
    pub(super) fn is_unchanged_for(&mut self, call: &str, open_from: FindPendingStart<'_>) -> bool {
        let now = (self.pending_text(open_from), self.is_shared);
        match self.snapshots.iter().position(|(seer, _)| **seer == *call) {
            Some(place) => self.snapshots.remove(place).is_some_and(|(_, seen)| seen == Some(now)),
            None => now == InputSnapshot::default() || !self.has_evicted,
        }
    }

    /// Records that several programs may have read parts of the input. The snapshot of `call` stays
    /// valid.
    pub(super) fn mark_shared(&mut self, call: &str, open_from: FindPendingStart<'_>) {
        let now = (self.pending_text(open_from), self.is_shared);
        self.is_shared = true;
        let mixed = (self.pending_text(open_from), true);
        let seen = self.snapshots.iter_mut().find(|(seer, _)| **seer == *call);
        if let Some((_, seen)) = seen.filter(|(_, seen)| seen.as_ref() == Some(&now)) {
            *seen = Some(mixed);
        }
    }

    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Ctrl-C discards the text before it.
        if let Some(at) = self.bytes.iter().rposition(|byte| *byte == 0x3) {
            self.bytes.drain(..=at);
            self.is_shared = false;
        }
    }

    /// Drops the input before the pending part.
    pub(super) fn discard_completed(&mut self, open_from: FindPendingStart<'_>) {
        self.bytes = self.pending_text(open_from).into_bytes();
    }

    fn pending_text(&self, open_from: FindPendingStart<'_>) -> String {
        let text = self.to_text();
        let from = if self.is_shared { find_line_start(&text) } else { open_from(&text) };
        text.get(from..).map_or(text.clone(), str::to_owned)
    }
}

/// Returns the start of the last unterminated line. A backslash continues a line, and Ctrl-D only
/// delivers the part typed so far.
pub(super) fn find_line_start(typed: &str) -> usize {
    let mut start = 0;
    for (at, byte) in typed.bytes().enumerate() {
        let is_end = match byte {
            0x4 => at == start,
            b'\n' | b'\r' => !typed[start..at].ends_with('\\'),
            _ => false,
        };
        if is_end {
            start = at + 1;
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    // SH9: a call with an outdated snapshot is rejected.
    #[test]
    fn a_call_types_only_behind_what_it_was_judged_by() {
        let (first, second) = ("a", "b");
        let mut typed = PtyInput::default();
        assert_eq!(typed.snapshot_for(first, &find_line_start), "");
        assert_eq!(typed.snapshot_for(second, &find_line_start), "");
        assert!(typed.is_unchanged_for(first, &find_line_start));
        typed.push(b"rm -");
        assert!(!typed.is_unchanged_for(second, &find_line_start));

        // So is a call that took two different snapshots.
        assert_eq!(typed.snapshot_for(first, &find_line_start), "rm -");
        typed.push(b"f x\n");
        assert_eq!(typed.snapshot_for(first, &find_line_start), "");
        assert!(!typed.is_unchanged_for(first, &find_line_start));

        // A terminated line is not pending.
        assert_eq!(typed.snapshot_for(first, &find_line_start), "");
        typed.push(b"ls\n");
        assert!(typed.is_unchanged_for(first, &find_line_start));
        typed.push(b"l");
        typed.push(b"x\x03y");
        assert_eq!(typed.to_text(), "y");
    }

    // SH9: the reader of each part stays unknown until Ctrl-C discards the input.
    #[test]
    fn what_several_may_have_read_goes_on() {
        let mut typed = PtyInput::default();
        let (first, second) = ("a", "b");
        typed.snapshot_for(first, &|_| 0);
        typed.snapshot_for(second, &|_| 0);
        typed.mark_shared(first, &|_| 0);
        assert!(!typed.is_unchanged_for(second, &|_| 0));
        assert!(typed.is_unchanged_for(first, &|_| 0));
        typed.push(b"a\nb");
        typed.discard_completed(&|_| 0);
        assert_eq!(typed.snapshot_for(second, &|_| 0), "b");
        assert_eq!((typed.to_text().as_str(), typed.is_shared()), ("b", true));
        assert!(typed.is_unchanged_for(second, &|_| 0));
        typed.push(b"\x03");
        assert_eq!((typed.to_text().as_str(), typed.is_shared()), ("", false));
    }

    #[test]
    fn who_was_forgotten_types_nothing_behind_what_goes_on() {
        let mut typed = PtyInput::default();
        for number in 0..=MAX_SNAPSHOTS {
            typed.snapshot_for(&number.to_string(), &find_line_start);
        }
        assert!(typed.is_unchanged_for("0", &find_line_start));
        typed.push(b"x");
        assert!(!typed.is_unchanged_for("0", &find_line_start));
    }
}
