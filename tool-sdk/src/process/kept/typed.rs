//! What was typed into a terminal and goes on with what is typed next.
//!
//! A call is judged by what was typed before it, and other calls may type meanwhile. So it is
//! remembered what each one saw, and a call whose text would mean something else by now types
//! nothing.
//!
//! **Invariant:** nothing here knows what reads the text: whoever types says where it goes on.

use std::collections::VecDeque;

use crate::call::CallId;

/// Where in a text the part begins that goes on with what is typed next.
pub(super) type OpenFrom<'a> = &'a (dyn Fn(&str) -> usize + Sync);

/// How many calls are remembered that have not typed yet.
const MOST: usize = 64;

/// What was typed and may go on.
#[derive(Debug, Default)]
pub(super) struct Typed {
    bytes: Vec<u8>,
    /// What each call saw of it; nothing where that changed while it was judged.
    seen: VecDeque<(CallId, Option<String>)>,
    /// Whether a call was forgotten before it typed.
    forgets: bool,
    /// Whether nobody knows what read which part, so that all of it goes on.
    is_mixed: bool,
}

impl Typed {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// What goes on, which `call` is judged by.
    pub(super) fn seen_by(&mut self, call: &CallId, open_from: OpenFrom<'_>) -> String {
        let open = self.open(open_from);
        match self.seen.iter_mut().find(|(seer, _)| seer == call) {
            Some((_, seen)) if seen.as_ref() == Some(&open) => {}
            Some((_, seen)) => *seen = None,
            None => {
                self.seen.push_back((call.clone(), Some(open.clone())));
                self.forgets |= self.seen.len() > MOST && self.seen.pop_front().is_some();
            }
        }
        open
    }

    /// Whether what goes on is what `call` was judged by, if anybody judged it; asked once.
    pub(super) fn is_as_seen(&mut self, call: &CallId, open_from: OpenFrom<'_>) -> bool {
        let open = self.open(open_from);
        match self.seen.iter().position(|(seer, _)| seer == call) {
            Some(place) => self.seen.remove(place).is_some_and(|(_, seen)| seen == Some(open)),
            None => open.is_empty() || !self.forgets,
        }
    }

    /// Says that several programs may have read parts.
    pub(super) fn mix(&mut self) {
        self.is_mixed = true;
    }

    pub(super) fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // What stands before it was thrown away with it.
        if let Some(at) = self.bytes.iter().rposition(|byte| *byte == 0x3) {
            self.bytes.drain(..=at);
            self.is_mixed = false;
        }
    }

    /// Forgets what has ended.
    pub(super) fn settle(&mut self, open_from: OpenFrom<'_>) {
        self.bytes = self.open(open_from).into_bytes();
    }

    fn open(&self, open_from: OpenFrom<'_>) -> String {
        let text = self.text();
        let from = if self.is_mixed { 0 } else { open_from(&text) };
        text.get(from..).map_or(text.clone(), str::to_owned)
    }
}

/// Where the line starts that has not ended: behind a backslash the next one belongs to it,
/// and Ctrl-D only hands over what there is of it.
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

    // SH9: who was judged by something else types nothing.
    #[test]
    fn a_call_types_only_behind_what_it_was_judged_by() {
        let (first, second) = (CallId::given("a"), CallId::given("b"));
        let mut typed = Typed::default();
        assert_eq!(typed.seen_by(&first, &line_start), "");
        assert_eq!(typed.seen_by(&second, &line_start), "");
        assert!(typed.is_as_seen(&first, &line_start));
        typed.push(b"rm -");
        assert!(!typed.is_as_seen(&second, &line_start));

        // Also who looked twice, and was judged by something else the first time.
        assert_eq!(typed.seen_by(&first, &line_start), "rm -");
        typed.push(b"f x\n");
        assert_eq!(typed.seen_by(&first, &line_start), "");
        assert!(!typed.is_as_seen(&first, &line_start));

        // A line that has ended is nobody's concern.
        assert_eq!(typed.seen_by(&first, &line_start), "");
        typed.push(b"ls\n");
        assert!(typed.is_as_seen(&first, &line_start));
        typed.push(b"l");
        typed.push(b"x\x03y");
        assert_eq!(typed.text(), "y");
    }

    // SH9: who reads what is not known until all of it is thrown away.
    #[test]
    fn what_several_may_have_read_goes_on() {
        let mut typed = Typed::default();
        typed.mix();
        typed.push(b"a\nb\n");
        typed.settle(&line_start);
        assert_eq!((typed.text().as_str(), typed.is_mixed()), ("a\nb\n", true));
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
