//! What waits to be looked at: scripts, and commands.

use std::ops::Range;
use std::rc::Rc;

use crate::shell::places::Place;
use crate::shell::unwrap::Language;
use crate::shell::word::Word;

/// A script that waits.
pub(super) struct Script {
    pub(super) text: String,
    pub(super) language: Language,
    pub(super) inner: bool,
    pub(super) depth: usize,
    pub(super) place: Place,
}

/// A command that waits.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) words: Rc<[Word]>,
    pub(super) range: Range<usize>,
    pub(super) inner: bool,
    pub(super) depth: usize,
    pub(super) place: Place,
    /// Whether more words may come at the end.
    pub(super) open_end: bool,
    /// Whether it is only possible that it is a command.
    pub(super) is_guess: bool,
}

impl Job {
    /// Takes out the words that stand for something else.
    pub(super) fn without(mut self, placeholder: Option<&str>) -> Self {
        let Some(placeholder) = placeholder else { return self };
        let mut words = self.words[self.range.clone()].to_vec();
        for word in words.iter_mut().filter(|word| word.value.contains(placeholder)) {
            word.unknown = true;
        }
        if words.iter().skip(1).any(|word| word.value == placeholder) {
            let head = words.remove(0);
            words.retain(|word| word.value != placeholder);
            words.insert(0, head);
        }
        self.range = 0..words.len();
        self.words = words.into();
        self
    }
}
