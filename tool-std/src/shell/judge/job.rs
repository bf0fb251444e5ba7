//! What waits to be looked at: scripts, and commands.

use std::ops::Range;
use std::rc::Rc;

use crate::shell::places::Place;
use crate::shell::unwrap::{Language, Placeholder};
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
    /// Whether it works on files that another command finds.
    pub(super) is_found: bool,
}

impl Job {
    /// Says which words nobody knows, because `placeholder` stands in them for something else.
    pub(super) fn open(mut self, placeholder: Option<&Placeholder>) -> Self {
        let Some(placeholder) = placeholder else { return self };
        let words = &self.words[self.range.clone()];
        let is_given = self.open_end || words.iter().any(|word| placeholder.is_in(word));
        self.is_found = is_given && matches!(placeholder, Placeholder::Path(_));
        // What comes at the end may as well be left out: more words come there.
        let is_more =
            |word: &&Word| *placeholder != Placeholder::Path("/_") && placeholder.is(word);
        let more = words.iter().skip(1).rev().take_while(is_more).count();
        self.open_end |= more > 0;
        let words = words[..words.len() - more].iter().cloned();
        self.words = words.map(|word| placeholder.open(word)).collect();
        self.range = 0..self.words.len();
        self
    }
}
