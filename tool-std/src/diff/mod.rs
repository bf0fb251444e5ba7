//! What changes in a file, as a unified diff for whoever approves or reads it.
//!
//! **Invariant:** the counts are exact, also where the diff itself is cut.

mod stretch;
#[cfg(test)]
mod tests;
mod unified;

use serde_json::{Value, json};
use tool_sdk::one_line;

pub(crate) use self::stretch::Change;
use self::stretch::{Stretch, counts_along};
use self::unified::unified;
use crate::text::lines::split_bom;

/// Lines around a change.
const CONTEXT: usize = 3;

/// The most lines of a diff of a file.
const MAX_LINES: usize = 1000;

/// The differences between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    /// In unified form; empty when nothing differs, or when nobody wants to see it.
    pub(crate) unified: String,
    /// Lines that only the new text has.
    pub(crate) added: usize,
    /// Lines that only the old text has.
    pub(crate) removed: usize,
}

/// What happens to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// The file.
    pub(crate) path: String,
    /// The difference, headed by the names of both sides.
    pub(crate) diff: Diff,
    /// Whether it may be told; otherwise a note stands for it, and nothing is counted.
    is_told: bool,
}

/// How much of a difference somebody wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All of it that is reasonable.
    Shown,
    /// How many lines it is.
    Counted,
}

impl FileDiff {
    /// From `old` to `new`; a side without a file is `None`.
    pub(crate) fn new(path: &str, old: Option<&str>, new: Option<&str>, detail: Detail) -> Self {
        let (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
        let diff = between(before, after, detail.lines());
        Self::headed(path, diff, [old.is_some(), new.is_some()], detail)
    }

    /// From `old` to `new`, where somebody knows what changed.
    pub(crate) fn along(
        path: &str,
        old: &str,
        new: &str,
        changes: &[Change],
        detail: Detail,
    ) -> Self {
        let texts = [split_bom(old).1, split_bom(new).1];
        // One may put back what another takes away.
        let changes = if old == new { &[] } else { changes };
        let counted = (detail == Detail::Counted).then(|| counts_along(texts, changes)).flatten();
        let diff = match counted {
            Some([removed, added]) => Diff { unified: String::new(), added, removed },
            None => match Stretch::along(texts[0], texts[1], changes) {
                Some(stretches) => diff(&stretches, detail.lines()),
                None => between(old, new, detail.lines()),
            },
        };
        Self::headed(path, diff, [true, true], detail)
    }

    /// That there may be a difference, of a file that may not be read.
    pub(crate) fn untold(path: &str) -> Self {
        let path = path.to_owned();
        let unified = format!("[what changes in {} may not be shown]\n", one_line(&path));
        Self { path, diff: Diff { unified, added: 0, removed: 0 }, is_told: false }
    }

    /// How many lines it adds and removes, where that may be told.
    pub(crate) fn counts(&self) -> Option<(usize, usize)> {
        self.is_told.then_some((self.diff.added, self.diff.removed))
    }

    /// The same for a file that gets another name, which the head of the difference says.
    pub(crate) fn moved(mut self, to: &str, detail: Detail) -> Self {
        if detail == Detail::Shown {
            let hunks = self.diff.unified.splitn(3, '\n').nth(2).unwrap_or_default();
            self.diff.unified =
                format!("--- {}\n+++ {}\n{hunks}", one_line(&self.path), one_line(to));
        }
        self
    }

    /// The same with what happens to another file at the same time.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.diff.unified.push_str(&other.diff.unified);
        self.diff.added += other.diff.added;
        self.diff.removed += other.diff.removed;
        self.is_told &= other.is_told;
        self
    }

    fn headed(path: &str, mut diff: Diff, is_there: [bool; 2], detail: Detail) -> Self {
        // Of an empty file that comes or goes, that is all there is to show.
        let comes_or_goes = is_there[0] != is_there[1] && detail == Detail::Shown;
        if comes_or_goes || !diff.unified.is_empty() {
            let [old, new] =
                is_there.map(|there| if there { one_line(path) } else { "/dev/null".into() });
            diff.unified = format!("--- {old}\n+++ {new}\n{}", diff.unified);
        }
        Self { path: path.to_owned(), diff, is_told: true }
    }

    /// As a preview of a call has it.
    pub(crate) fn to_json(&self) -> Value {
        let mut data = json!({ "unified": self.diff.unified, "path": self.path });
        if let Some((added, removed)) = self.counts() {
            data["added"] = added.into();
            data["removed"] = removed.into();
        }
        data
    }
}

impl Detail {
    fn lines(self) -> usize {
        match self {
            Self::Shown => MAX_LINES,
            Self::Counted => 0,
        }
    }
}

/// The differences between two texts, at most `max_lines` lines of them.
///
/// A byte order mark is no part of the first line.
pub(crate) fn between(old: &str, new: &str, max_lines: usize) -> Diff {
    diff(&Stretch::between(split_bom(old).1, split_bom(new).1), max_lines)
}

/// Whether the same lines go and come from the old text of both pairs to the new one, wherever
/// these stand.
pub(crate) fn is_same_change(one: [&str; 2], other: [&str; 2]) -> bool {
    let changed = |[old, new]: [&'_ str; 2]| {
        let stretches = Stretch::between(split_bom(old).1, split_bom(new).1).into_iter();
        let changed = stretches.filter_map(|stretch| match stretch {
            Stretch::Changed { old, new, .. } => Some((old.to_owned(), new.to_owned())),
            Stretch::Same(_) => None,
        });
        changed.collect::<Vec<_>>()
    };
    changed(one) == changed(other)
}

fn diff(stretches: &[Stretch<'_>], max_lines: usize) -> Diff {
    let (mut added, mut removed) = (0, 0);
    for stretch in stretches {
        if let Stretch::Changed { lines, .. } = stretch {
            removed += lines[0];
            added += lines[1];
        }
    }
    let unified = if max_lines > 0 { unified(stretches, max_lines) } else { String::new() };
    Diff { unified, added, removed }
}
