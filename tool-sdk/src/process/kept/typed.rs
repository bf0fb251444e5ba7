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

use crate::call::CallId;

/// A callback that returns the offset in a text at which the pending input starts.
pub(super) type OpenFrom<'a> = &'a (dyn Fn(&str) -> usize + Sync);

/// How many snapshots are kept of calls that have not typed yet.
const MOST: usize = 64;

/// The pending input of a terminal, and the snapshots by which calls were authorized.
#[derive(Debug, Default)]
pub(super) struct Typed {
    bytes: Vec<u8>,
    /// The snapshot of each call; `None` when the input changed while the call was authorized.
    seen: VecDeque<(CallId, Option<Seen>)>,
    /// Whether a snapshot was evicted before its call typed.
    forgets: bool,
    /// Whether several programs may have read parts of the input. Then only the last line counts
    /// as pending, and the text before it is unknown.
    is_mixed: bool,
}

/// The pending input, and whether the text before it is unknown.
type Seen = (String, bool);

impl Typed {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the pending input and stores it as the snapshot of `call`.
    pub(super) fn seen_by(&mut self, call: &CallId, open_from: OpenFrom<'_>) -> String {
        let now = (self.open(open_from), self.is_mixed);
        match self.seen.iter_mut().find(|(seer, _)| seer == call) {
            Some((_, seen)) if seen.as_ref() == Some(&now) => {}
            Some((_, seen)) => *seen = None,
            None => {
                self.seen.push_back((call.clone(), Some(now.clone())));
                self.forgets |= self.seen.len() > MOST && self.seen.pop_front().is_some();
            }
        }
        now.0
    }

    /// Returns whether the pending input still equals the snapshot of `call`, if there is one, and
    /// removes the snapshot.
    pub(super) fn is_as_seen(&mut self, call: &CallId, open_from: OpenFrom<'_>) -> bool {
        let now = (self.open(open_from), self.is_mixed);
        match self.seen.iter().position(|(seer, _)| seer == call) {
            Some(place) => self.seen.remove(place).is_some_and(|(_, seen)| seen == Some(now)),
            None => now == Seen::default() || !self.forgets,
        }
    }

    /// Records that several programs may have read parts of the input. The snapshot of `call` stays
    /// valid.
    pub(super) fn mix(&mut self, call: &CallId, open_from: OpenFrom<'_>) {
        let now = (self.open(open_from), self.is_mixed);
        self.is_mixed = true;
        let mixed = (self.open(open_from), true);
        let seen = self.seen.iter_mut().find(|(seer, _)| seer == call);
        if let Some((_, seen)) = seen.filter(|(_, seen)| seen.as_ref() == Some(&now)) {
            *seen = Some(mixed);
        }
    }

    pub(super) fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Ctrl-C discards the text before it.
        if let Some(at) = self.bytes.iter().rposition(|byte| *byte == 0x3) {
            self.bytes.drain(..=at);
            self.is_mixed = false;
        }
    }

    /// Drops the input before the pending part.
    pub(super) fn settle(&mut self, open_from: OpenFrom<'_>) {
        self.bytes = self.open(open_from).into_bytes();
    }

    fn open(&self, open_from: OpenFrom<'_>) -> String {
        let text = self.text();
        let from = if self.is_mixed { line_start(&text) } else { open_from(&text) };
        text.get(from..).map_or(text.clone(), str::to_owned)
    }
}

/// Returns the start of the last unterminated line. A backslash continues a line, and Ctrl-D only
/// delivers the part typed so far.
pub(super) fn line_start(typed: &str) -> usize {
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
        let (first, second) = (CallId::given("a"), CallId::given("b"));
        let mut typed = Typed::default();
        assert_eq!(typed.seen_by(&first, &line_start), "");
        assert_eq!(typed.seen_by(&second, &line_start), "");
        assert!(typed.is_as_seen(&first, &line_start));
        typed.push(b"rm -");
        assert!(!typed.is_as_seen(&second, &line_start));

        // So is a call that took two different snapshots.
        assert_eq!(typed.seen_by(&first, &line_start), "rm -");
        typed.push(b"f x\n");
        assert_eq!(typed.seen_by(&first, &line_start), "");
        assert!(!typed.is_as_seen(&first, &line_start));

        // A terminated line is not pending.
        assert_eq!(typed.seen_by(&first, &line_start), "");
        typed.push(b"ls\n");
        assert!(typed.is_as_seen(&first, &line_start));
        typed.push(b"l");
        typed.push(b"x\x03y");
        assert_eq!(typed.text(), "y");
    }

    // SH9: the reader of each part stays unknown until Ctrl-C discards the input.
    #[test]
    fn what_several_may_have_read_goes_on() {
        let mut typed = Typed::default();
        let (first, second) = (CallId::given("a"), CallId::given("b"));
        typed.seen_by(&first, &|_| 0);
        typed.seen_by(&second, &|_| 0);
        typed.mix(&first, &|_| 0);
        assert!(!typed.is_as_seen(&second, &|_| 0));
        assert!(typed.is_as_seen(&first, &|_| 0));
        typed.push(b"a\nb");
        typed.settle(&|_| 0);
        assert_eq!(typed.seen_by(&second, &|_| 0), "b");
        assert_eq!((typed.text().as_str(), typed.is_mixed()), ("b", true));
        assert!(typed.is_as_seen(&second, &|_| 0));
        typed.push(b"\x03");
        assert_eq!((typed.text().as_str(), typed.is_mixed()), ("", false));
    }

    #[test]
    fn who_was_forgotten_types_nothing_behind_what_goes_on() {
        let mut typed = Typed::default();
        for number in 0..=MOST {
            typed.seen_by(&CallId::given(&number.to_string()), &line_start);
        }
        assert!(typed.is_as_seen(&CallId::given("0"), &line_start));
        typed.push(b"x");
        assert!(!typed.is_as_seen(&CallId::given("0"), &line_start));
    }
}
