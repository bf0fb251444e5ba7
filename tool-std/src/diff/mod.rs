//! Computes the diff of a file in unified form, for the approval preview and the result.
//!
//! **Invariant:** the line counts are exact, even if the diff itself is truncated.

mod segment;
#[cfg(test)]
mod tests;
mod unified;

use serde_json::{Value, json};
use tool_sdk::escape_for_display;

pub(crate) use self::segment::LineChange;
use self::segment::{DiffSegment, counts_from_changes};
use self::unified::format_unified;
use crate::text::lines::split_bom;

/// The number of context lines around a change.
const CONTEXT: usize = 3;

/// The maximum number of lines of a file's diff.
const MAX_LINES: usize = 1000;

/// The differences between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnifiedDiff {
    /// The unified diff; empty when the texts are equal, or when only counts were requested.
    pub(crate) unified: String,
    /// The number of added lines.
    pub(crate) added: usize,
    /// The number of removed lines.
    pub(crate) removed: usize,
}

/// The diff of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// The path of the file.
    pub(crate) path: String,
    /// The diff, with a header that names both sides.
    pub(crate) diff: UnifiedDiff,
    /// Whether the content may be revealed; otherwise a note replaces the diff, and nothing is
    /// counted.
    is_visible: bool,
}

/// The requested level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffDetail {
    /// The diff, up to its maximum length.
    Full,
    /// The diff with every line.
    #[cfg_attr(not(feature = "skills"), expect(dead_code, reason = "only packages are shown so"))]
    Whole,
    /// Only the line counts.
    CountsOnly,
}

impl FileDiff {
    /// Computes the diff from `old` to `new`; a side without a file is `None`.
    pub(crate) fn new(
        path: &str,
        old: Option<&str>,
        new: Option<&str>,
        detail: DiffDetail,
    ) -> Self {
        let (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
        let diff = diff_texts(before, after, detail.max_lines());
        Self::with_header(path, diff, [old.is_some(), new.is_some()], detail)
    }

    /// Formats the diff from `old` to `new` from known changes.
    pub(crate) fn from_changes(
        path: &str,
        old: &str,
        new: &str,
        changes: &[LineChange],
        detail: DiffDetail,
    ) -> Self {
        let texts = [split_bom(old).1, split_bom(new).1];
        // A change may be undone by another one.
        let changes = if old == new { &[] } else { changes };
        let counted = (detail == DiffDetail::CountsOnly)
            .then(|| counts_from_changes(texts, changes))
            .flatten();
        let diff = match counted {
            Some([removed, added]) => UnifiedDiff { unified: String::new(), added, removed },
            None => match DiffSegment::from_changes(texts[0], texts[1], changes) {
                Some(stretches) => diff_segments(&stretches, detail.max_lines()),
                None => diff_texts(old, new, detail.max_lines()),
            },
        };
        Self::with_header(path, diff, [true, true], detail)
    }

    /// Returns the placeholder for a file that may not be read.
    pub(crate) fn hidden(path: &str) -> Self {
        let path = path.to_owned();
        let unified = format!("[what changes in {} may not be shown]\n", escape_for_display(&path));
        Self { path, diff: UnifiedDiff { unified, added: 0, removed: 0 }, is_visible: false }
    }

    /// Returns the numbers of added and removed lines, if the content may be revealed.
    pub(crate) fn line_counts(&self) -> Option<(usize, usize)> {
        self.is_visible.then_some((self.diff.added, self.diff.removed))
    }

    /// Adds the new path of a moved file to the header.
    pub(crate) fn with_move(mut self, to: &str, detail: DiffDetail) -> Self {
        if detail == DiffDetail::Full {
            let hunks = self.diff.unified.splitn(3, '\n').nth(2).unwrap_or_default();
            self.diff.unified = format!(
                "--- {}\n+++ {}\n{hunks}",
                escape_for_display(&self.path),
                escape_for_display(to)
            );
        }
        self
    }

    /// Appends the diff of another file.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.diff.unified.push_str(&other.diff.unified);
        self.diff.added += other.diff.added;
        self.diff.removed += other.diff.removed;
        self.is_visible &= other.is_visible;
        self
    }

    fn with_header(
        path: &str,
        mut diff: UnifiedDiff,
        is_there: [bool; 2],
        detail: DiffDetail,
    ) -> Self {
        // An empty file that is created or removed has only a header.
        let comes_or_goes = is_there[0] != is_there[1] && detail != DiffDetail::CountsOnly;
        if comes_or_goes || !diff.unified.is_empty() {
            let [old, new] = is_there
                .map(|there| if there { escape_for_display(path) } else { "/dev/null".into() });
            diff.unified = format!("--- {old}\n+++ {new}\n{}", diff.unified);
        }
        Self { path: path.to_owned(), diff, is_visible: true }
    }

    /// Returns the data for the approval preview.
    pub(crate) fn to_json(&self) -> Value {
        let mut data = json!({ "unified": self.diff.unified, "path": self.path });
        if let Some((added, removed)) = self.line_counts() {
            data["added"] = added.into();
            data["removed"] = removed.into();
        }
        data
    }
}

impl DiffDetail {
    fn max_lines(self) -> usize {
        match self {
            Self::Full => MAX_LINES,
            Self::Whole => usize::MAX,
            Self::CountsOnly => 0,
        }
    }
}

/// Computes the differences between two texts, with at most `max_lines` lines.
///
/// A byte order mark is not part of the first line.
pub(crate) fn diff_texts(old: &str, new: &str, max_lines: usize) -> UnifiedDiff {
    diff_segments(&DiffSegment::from_texts(split_bom(old).1, split_bom(new).1), max_lines)
}

/// Whether both pairs of an old and a new text have the same removed and added lines, at any
/// position.
pub(crate) fn is_same_change(one: [&str; 2], other: [&str; 2]) -> bool {
    let changed = |[old, new]: [&'_ str; 2]| {
        let stretches = DiffSegment::from_texts(split_bom(old).1, split_bom(new).1).into_iter();
        let changed = stretches.filter_map(|stretch| match stretch {
            DiffSegment::Changed { old, new, .. } => Some((old.to_owned(), new.to_owned())),
            DiffSegment::Equal(_) => None,
        });
        changed.collect::<Vec<_>>()
    };
    changed(one) == changed(other)
}

fn diff_segments(stretches: &[DiffSegment<'_>], max_lines: usize) -> UnifiedDiff {
    let (mut added, mut removed) = (0, 0);
    for stretch in stretches {
        if let DiffSegment::Changed { lines, .. } = stretch {
            removed += lines[0];
            added += lines[1];
        }
    }
    let unified = if max_lines > 0 { format_unified(stretches, max_lines) } else { String::new() };
    UnifiedDiff { unified, added, removed }
}
