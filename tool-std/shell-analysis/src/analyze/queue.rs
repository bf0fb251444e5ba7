//! The queued scripts and commands of the analyzer.

use std::ops::Range;
use std::rc::Rc;

use crate::execution_order::CommandPosition;
use crate::word::ShellWord;
use crate::wrappers::{ArgPlaceholder, ScriptLanguage};

/// A script that waits to be parsed.
pub(super) struct QueuedScript {
    pub(super) text: String,
    pub(super) language: ScriptLanguage,
    pub(super) is_nested: bool,
    pub(super) depth: usize,
    pub(super) position: CommandPosition,
}

/// A command that waits to be classified.
#[derive(Clone)]
pub(super) struct QueuedCommand {
    pub(super) words: Rc<[ShellWord]>,
    pub(super) range: Range<usize>,
    pub(super) is_nested: bool,
    pub(super) depth: usize,
    pub(super) position: CommandPosition,
    /// Whether more words may be appended at run time.
    pub(super) has_open_end: bool,
    /// Whether it may not be a command at all.
    pub(super) is_guess: bool,
    /// Whether it works on files that another command finds, as with `find -exec`.
    pub(super) uses_found_files: bool,
}

impl QueuedCommand {
    /// Marks the words with the placeholder as unknown.
    pub(super) fn with_placeholder(mut self, placeholder: Option<&ArgPlaceholder>) -> Self {
        let Some(placeholder) = placeholder else { return self };
        let words = &self.words[self.range.clone()];
        let is_given = self.has_open_end || words.iter().any(|word| placeholder.is_in(word));
        self.uses_found_files = is_given && matches!(placeholder, ArgPlaceholder::Path(_));
        // Trailing placeholder words are dropped, because words are appended there anyway.
        let is_more = |word: &&ShellWord| {
            *placeholder != ArgPlaceholder::Path("/_") && placeholder.is_whole_word(word)
        };
        let more = words.iter().skip(1).rev().take_while(is_more).count();
        self.has_open_end |= more > 0;
        let words = words[..words.len() - more].iter().cloned();
        self.words = words.map(|word| placeholder.mark_unknown(word)).collect();
        self.range = 0..self.words.len();
        self
    }
}
