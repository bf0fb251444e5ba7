//! Formats the results of a content search for the model.
//!
//! **Invariant:** nothing here opens a file.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::SystemTime;

use serde_json::{Value, json};
use tool_sdk::{Output, ToolError, escape_for_display};

use crate::text::MAX_BYTES;

/// The content of the result, and so the unit of `limit`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputMode {
    Content,
    Files,
    Count,
}

impl OutputMode {
    pub(super) fn from_name(name: &str) -> Result<Self, ToolError> {
        match name {
            "content" => Ok(Self::Content),
            "files" => Ok(Self::Files),
            "count" => Ok(Self::Count),
            _ => Err(ToolError::invalid(
                "output_mode",
                format_args!("`{name}` is not one of `content`, `files`, `count`"),
            )),
        }
    }
}

/// The matches of one file.
pub(super) struct FileMatches {
    pub(super) path: String,
    pub(super) modified: SystemTime,
    pub(super) matches: u64,
    pub(super) lines: Vec<MatchLine>,
}

/// A line of the result.
pub(super) struct MatchLine {
    pub(super) number: u64,
    pub(super) text: String,
    /// The number of the match in the file, counting from 1; `None` for a context line.
    pub(super) match_number: Option<u64>,
}

/// The results of a search.
pub(super) struct SearchResults {
    pub(super) mode: OutputMode,
    pub(super) limit: u64,
    /// The number of context lines around a match.
    pub(super) context: u64,
    /// Whether the search stopped early.
    pub(super) is_truncated: bool,
    pub(super) skipped: SkippedCounts,
    /// The files with matches, in display order.
    pub(super) files: Vec<FileMatches>,
}

/// What the search skipped.
pub(super) struct SkippedCounts {
    /// Files and folders that could not be read.
    pub(super) unreadable: u64,
    /// Files that are too large for a multiline search.
    pub(super) too_large: u64,
    /// Folders on another device than the start of the search.
    pub(super) other_devices: u64,
    /// Files that begin like text, and were not searched after a NUL byte.
    pub(super) partially_searched: u64,
    /// Ignore files that were truncated.
    pub(super) truncated_ignore_files: u64,
    /// Files that the read rules hide unless the call names them.
    pub(super) withheld: u64,
}

/// Formats the results for the model.
pub(super) fn format_results(pattern: &str, results: &SearchResults) -> Output {
    let matches = results.files.iter().map(|file| file.matches).sum::<u64>();
    let files = results.files.len() as u64;
    let total = if results.mode == OutputMode::Content { matches } else { files };

    let mut report = ReportWriter::new(results);
    report.write_summary(matches, files);
    for file in &results.files {
        if report.is_full || report.shown == results.limit {
            break;
        }
        match results.mode {
            OutputMode::Content => report.write_matches(file),
            OutputMode::Files | OutputMode::Count => report.write_file_line(file),
        }
    }
    report.write_limit_note(total);
    let left = &results.skipped;
    report.text.push_str(&unreadable_note(left.unreadable));
    report.text.push_str(&too_large_note(left.too_large));
    report.text.push_str(&other_devices_note(left.other_devices));
    report.text.push_str(&partially_searched_note(left.partially_searched));
    report.text.push_str(&truncated_ignore_files_note(left.truncated_ignore_files));
    report.text.push_str(&withheld_note(left.withheld));
    report.text.pop();

    let truncated = report.is_truncated || report.is_full || report.shown < total;
    // When the search stopped early, the total is unknown.
    let known = match results.mode {
        _ if report.is_truncated => report.shown,
        OutputMode::Files => files,
        OutputMode::Content | OutputMode::Count => matches,
    };
    let display = json!({
        "type": "search",
        "pattern": pattern,
        "matches": report.matches,
        "total_matches": known,
        "truncated": truncated,
    });
    Output::text(report.text)
        .metadata("shown", report.shown)
        .metadata("truncated", truncated)
        .display(display)
}

/// Writes the text of the result up to its limits.
struct ReportWriter {
    mode: OutputMode,
    limit: u64,
    context: u64,
    /// The search stopped early, so the totals are unknown.
    is_truncated: bool,
    text: String,
    shown: u64,
    /// The maximum size of the text is reached.
    is_full: bool,
    matches: Vec<Value>,
}

impl ReportWriter {
    fn new(results: &SearchResults) -> Self {
        let SearchResults { mode, limit, context, is_truncated: is_cut, .. } = *results;
        let (text, matches) = (String::new(), Vec::new());
        Self { mode, limit, context, is_truncated: is_cut, text, shown: 0, is_full: false, matches }
    }

    fn write_summary(&mut self, matches: u64, files: u64) {
        if files == 0 {
            self.text.push_str("No matches found.\n");
            return;
        }
        // When the search stopped early, the totals are unknown.
        if self.is_truncated {
            return;
        }
        let files = count_noun(files, "file", "files");
        let _ = match self.mode {
            OutputMode::Files => writeln!(self.text, "Found {files}."),
            OutputMode::Content | OutputMode::Count => {
                let matches = count_noun(matches, "match", "matches");
                writeln!(self.text, "Found {matches} in {files}.")
            }
        };
    }

    /// Writes one line for a file.
    fn write_file_line(&mut self, file: &FileMatches) {
        let path = escape_for_display(&file.path);
        let line = match self.mode {
            OutputMode::Count => format!("{path}: {}\n", file.matches),
            _ => format!("{path}\n"),
        };
        if self.push_block(&line) {
            self.shown += 1;
            self.matches.push(match self.mode {
                OutputMode::Count => json!({ "file": file.path, "count": file.matches }),
                _ => json!({ "file": file.path }),
            });
        }
    }

    /// Writes the matching lines of a file with their context.
    fn write_matches(&mut self, file: &FileMatches) {
        let mut head = format!("{}:\n", escape_for_display(&file.path));
        let mut waiting: Vec<&MatchLine> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut last: Option<&MatchLine> = None;
        let with_context = file.lines.iter().any(|line| line.match_number.is_none());
        for (at, line) in file.lines.iter().enumerate() {
            let Some(of) = line.match_number else {
                waiting.push(line);
                continue;
            };
            if !seen.contains(&of) && self.shown == self.limit {
                break;
            }
            let mut block = std::mem::take(&mut head);
            for line in waiting.drain(..).chain([line]) {
                let gap = last.is_some_and(|last| last.number + 1 < line.number);
                if gap && with_context {
                    block.push_str("  --\n");
                }
                let mark = if line.match_number.is_some() { ':' } else { '-' };
                let _ = writeln!(block, "  {}{mark} {}", line.number, line.text);
                last = Some(line);
            }
            if !self.push_block(&block) {
                return;
            }
            self.shown += u64::from(seen.insert(of));
            let mut shown = json!({ "file": file.path, "line": line.number, "content": line.text });
            if with_context {
                shown["context"] = self.context_lines(&file.lines, at).collect();
            }
            self.matches.push(shown);
        }
        // The context after the last match, as far as it is adjacent.
        let mut block = String::new();
        for line in waiting {
            if last.is_some_and(|last| last.number + 1 == line.number) {
                let _ = writeln!(block, "  {}- {}", line.number, line.text);
                last = Some(line);
            }
        }
        self.push_block(&block);
        // The search dropped lines, because there were too many.
        self.is_full |= self.shown < self.limit && (seen.len() as u64) < file.matches;
    }

    /// Returns the context lines of a match, for display data.
    fn context_lines(&self, lines: &[MatchLine], at: usize) -> impl Iterator<Item = Value> {
        let number = lines[at].number;
        let is_near = |line: &&MatchLine| line.number.abs_diff(number) <= self.context;
        let before = lines[..at].iter().rev().take_while(is_near).count();
        let after = lines[at + 1..].iter().take_while(is_near).count();
        let near =
            lines[at - before..=at + after].iter().filter(|line| line.match_number.is_none());
        near.map(|line| json!({ "line": line.number, "content": line.text }))
    }

    /// Appends a block, unless the text would be too long.
    fn push_block(&mut self, block: &str) -> bool {
        self.is_full |= self.text.len() + block.len() > MAX_BYTES;
        if !self.is_full {
            self.text.push_str(block);
        }
        !self.is_full
    }

    fn write_limit_note(&mut self, all: u64) {
        let (one, many) = match self.mode {
            OutputMode::Content => ("match", "matches"),
            OutputMode::Files | OutputMode::Count => ("file", "files"),
        };
        let shown = self.shown;
        let _ = match (self.is_full, self.is_truncated) {
            (true, true) => writeln!(
                self.text,
                "(Output capped at 50 KiB: showing {}; there are more. Narrow the pattern or the path.)",
                count_noun(shown, one, many)
            ),
            (true, false) => writeln!(
                self.text,
                "(Output capped at 50 KiB: showing {shown} of {}. Narrow the pattern or the path.)",
                count_noun(all, one, many)
            ),
            (false, true) => writeln!(
                self.text,
                "(Stopped at {}; there are more. Narrow the pattern or raise `limit`.)",
                count_noun(shown, one, many)
            ),
            (false, false) if shown < all => writeln!(
                self.text,
                "(Showing {shown} of {}. Narrow the pattern or raise `limit`.)",
                count_noun(all, one, many)
            ),
            (false, false) => Ok(()),
        };
    }
}

/// The note about files and folders that could not be read.
pub(crate) fn unreadable_note(number: u64) -> String {
    if number == 0 {
        return String::new();
    }
    format!("({} could not be read.)\n", count_noun(number, "file or folder", "files or folders"))
}

/// The note about files that are too large for a multiline search.
fn too_large_note(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let files = count_noun(files, "file over 4 MiB is", "files over 4 MiB are");
    format!("({files} too large for `multiline`, and left out; search without it.)\n")
}

/// The note about folders on another device.
pub(crate) fn other_devices_note(folders: u64) -> String {
    if folders == 0 {
        return String::new();
    }
    let (folders, it) =
        (count_noun(folders, "folder", "folders"), if folders == 1 { "it" } else { "one" });
    format!("({folders} on another device left out; name {it} as `path` to search there.)\n")
}

/// The note about files with NUL bytes.
fn partially_searched_note(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let (files, them) = (count_noun(files, "file", "files"), if files == 1 { "it" } else { "one" });
    format!(
        "({files} with NUL bytes left out, or searched up to the first; name {them} as `path` to \
         search all as text.)\n"
    )
}

/// The note about truncated ignore files.
pub(crate) fn truncated_ignore_files_note(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let files = count_noun(files, "ignore file has", "ignore files have");
    format!("({files} more rules than are used: what the last ones exclude was searched.)\n")
}

/// The note about files that the read rules hide unless the call names them. It does not depend on
/// the content of a file.
pub(crate) fn withheld_note(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let (files, them) = (count_noun(files, "file", "files"), if files == 1 { "it" } else { "one" });
    format!("({files} left out by the rules; name {them} as `path` to ask for it.)\n")
}

/// Formats a number with its noun, such as `1 file` and `3 files`.
pub(crate) fn count_noun(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
