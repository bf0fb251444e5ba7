//! Collects lines of source files, and formats them for the model, grouped by file.
//!
//! **Invariant:** nothing here opens a file.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use tool_sdk::{Output, escape_for_display};
use tool_std_code::{SymbolDefinition, SymbolKind};

use super::source_scan::ScanCounts;
use crate::search::report::count_noun;
use crate::text::MAX_BYTES;
use crate::text::excerpt::excerpt_around;

/// The maximum number of characters of a line.
const MAX_LINE: usize = 300;

/// The maximum number of lines that are collected from all files of a search.
const MAX_LINES: usize = 20_000;

/// How many more lines a search may collect, shared by all of its threads.
pub(super) struct LineBudget {
    left: AtomicUsize,
    is_exceeded: AtomicBool,
}

impl LineBudget {
    pub(super) fn new() -> Self {
        Self { left: AtomicUsize::new(MAX_LINES), is_exceeded: AtomicBool::new(false) }
    }

    /// Collects lines while there is budget.
    pub(super) fn collect(&self, lines: impl Iterator<Item = CodeLine>) -> Vec<CodeLine> {
        lines.map_while(|line| self.spend_one().then_some(line)).collect()
    }

    /// Returns whether lines were left out.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    /// Returns whether no more lines are collected, and the report will say so.
    pub(super) fn is_spent(&self) -> bool {
        self.is_exceeded() && self.left.load(Ordering::Relaxed) == 0
    }

    /// Remembers that lines were left out.
    pub(super) fn set_exceeded(&self) {
        self.is_exceeded.store(true, Ordering::Relaxed);
    }

    fn spend_one(&self) -> bool {
        let spend = |left: usize| left.checked_sub(1);
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok();
        if !spent {
            self.set_exceeded();
        }
        spent
    }
}

/// A line of a result.
pub(super) struct CodeLine {
    pub(super) path: String,
    /// The first and the last line in the file.
    pub(super) lines: (u32, u32),
    pub(super) text: String,
    /// Lines with smaller ranks come first.
    pub(super) rank: u32,
}

/// Lines of source files, and what the report says of them.
pub(super) struct CodeReport<'r> {
    /// What was searched, for display.
    pub(super) pattern: &'r str,
    /// What a line is, such as `definition` and `definitions`.
    pub(super) noun: (&'r str, &'r str),
    /// What stands behind the number of lines, such as ``of `area`, by name``.
    pub(super) summary: String,
    /// What follows when nothing was found.
    pub(super) advice: &'r str,
    pub(super) lines: Vec<CodeLine>,
    /// Whether there are more lines than were collected.
    pub(super) is_partial: bool,
    pub(super) limit: usize,
}

impl CodeReport<'_> {
    /// Writes at most `limit` lines, the smallest ranks first, then by path and line.
    pub(super) fn format(mut self, counts: &ScanCounts) -> Output {
        self.lines.sort_by(|one, other| {
            let by_rank = one.rank.cmp(&other.rank);
            by_rank.then_with(|| one.path.cmp(&other.path)).then(one.lines.cmp(&other.lines))
        });
        let (total, (one, many)) = (self.lines.len(), self.noun);
        let at_least = if self.is_partial { "at least " } else { "" };
        let counted = format!("{at_least}{}", count_noun(total as u64, one, many));
        let mut text = match total {
            0 if !self.is_partial => format!("No {many} {}. {}\n", self.summary, self.advice),
            _ => format!("Found {counted} {}.\n", self.summary),
        };
        let (mut shown, mut last_path) = (Vec::new(), None);
        for line in self.lines.iter().take(self.limit) {
            let mut block = String::new();
            if last_path != Some(&line.path) {
                block.push_str(&format!("{}:\n", escape_for_display(&line.path)));
            }
            block.push_str(&format!("  {}: {}\n", line_range(line.lines), line.text));
            if text.len() + block.len() > MAX_BYTES {
                break;
            }
            text.push_str(&block);
            last_path = Some(&line.path);
            shown.push(json!({ "file": line.path, "line": line.lines.0, "content": line.text }));
        }
        let truncated = shown.len() < total || self.is_partial;
        if truncated {
            text.push_str(&format!(
                "(Showing {} of {counted}. Narrow the search or raise `limit`.)\n",
                shown.len()
            ));
        }
        text.push_str(&counts.notes());
        text.pop();
        Output::text(text).metadata("shown", shown.len()).metadata("truncated", truncated).display(
            json!({
                "type": "search",
                "pattern": self.pattern,
                "matches": shown,
                "total_matches": total,
                "truncated": truncated,
            }),
        )
    }
}

/// Returns `12` for one line, and `12-40` for several.
pub(super) fn line_range((first, last): (u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Returns the line of a definition: kind, name with container, and signature.
pub(super) fn definition_line(path: &str, definition: &SymbolDefinition, rank: u32) -> CodeLine {
    let (kind, name) = (definition.kind, definition.qualified_name());
    CodeLine {
        path: path.to_owned(),
        lines: (definition.first_line, definition.last_line),
        text: format!("{kind} {name}: {}", definition.signature),
        rank,
    }
}

/// Returns line `number` of a text without spaces around it, cut around `column`.
pub(super) fn source_line(lines: &[&str], number: u32, column: u32) -> String {
    let line = lines.get(number as usize - 1).copied().unwrap_or_default();
    let trimmed = line.trim_start();
    let at = (column as usize).saturating_sub(line.len() - trimmed.len());
    excerpt_around(trimmed.trim_end().as_bytes(), at, MAX_LINE)
}

/// Whether a definition has the kind of the argument `kind`.
pub(super) fn has_kind(definition: &SymbolDefinition, kind: Option<SymbolKind>) -> bool {
    kind.is_none_or(|kind| kind == definition.kind)
}
