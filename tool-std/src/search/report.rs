//! What the model reads of the matches that were found.
//!
//! **Invariant:** nothing here looks at a file.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::SystemTime;

use serde_json::{Value, json};
use tool_sdk::{Output, ToolError, one_line};

use crate::text::MAX_BYTES;

/// What the result shows, and so what `limit` counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Content,
    Files,
    Count,
}

impl Mode {
    pub(super) fn of(name: &str) -> Result<Self, ToolError> {
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

/// A file with matches.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) modified: SystemTime,
    pub(super) matches: u64,
    pub(super) lines: Vec<Line>,
}

/// A line to show.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) text: String,
    /// Which match of the file it belongs to, from 1; a context line belongs to none.
    pub(super) of: Option<u64>,
}

/// What a search found.
pub(super) struct Results {
    pub(super) mode: Mode,
    pub(super) limit: u64,
    /// How many lines around a match are shown.
    pub(super) context: u64,
    /// The search stopped, because there is more than the limit and much was searched.
    pub(super) is_cut: bool,
    pub(super) left: Left,
    /// The files with matches, in the order in which they are shown.
    pub(super) files: Vec<Found>,
}

/// What a search did not look at.
pub(super) struct Left {
    /// Files and folders that could not be read.
    pub(super) unread: u64,
    /// Files that are too large for matches that span lines.
    pub(super) too_large: u64,
    /// Folders on another device than where the search began.
    pub(super) elsewhere: u64,
    /// Files that look like text at first, and were not searched behind that.
    pub(super) in_part: u64,
    /// Ignore files of which not all is heeded.
    pub(super) cut: u64,
    /// Files that the rules keep back from who does not name them.
    pub(super) withheld: u64,
}

/// The results as a model reads them.
pub(super) fn report(pattern: &str, results: &Results) -> Output {
    let matches = results.files.iter().map(|file| file.matches).sum::<u64>();
    let files = results.files.len() as u64;
    let total = if results.mode == Mode::Content { matches } else { files };

    let mut report = Report::new(results);
    report.head(matches, files);
    for file in &results.files {
        if report.full || report.shown == results.limit {
            break;
        }
        match results.mode {
            Mode::Content => report.content(file),
            Mode::Files | Mode::Count => report.one(file),
        }
    }
    report.foot(total);
    let left = &results.left;
    report.text.push_str(&unread(left.unread));
    report.text.push_str(&too_large(left.too_large));
    report.text.push_str(&elsewhere(left.elsewhere));
    report.text.push_str(&in_part(left.in_part));
    report.text.push_str(&cut(left.cut));
    report.text.push_str(&withheld(left.withheld));
    report.text.pop();

    let truncated = report.stopped || report.full || report.shown < total;
    // Where the search stopped early, what is shown is all that is known.
    let known = match results.mode {
        _ if report.stopped => report.shown,
        Mode::Files => files,
        Mode::Content | Mode::Count => matches,
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

/// The text, as far as it is written.
struct Report {
    mode: Mode,
    limit: u64,
    context: u64,
    /// There are more results than anybody has counted.
    stopped: bool,
    text: String,
    shown: u64,
    /// The text is as long as it may be.
    full: bool,
    matches: Vec<Value>,
}

impl Report {
    fn new(results: &Results) -> Self {
        let Results { mode, limit, context, is_cut, .. } = *results;
        let (text, matches) = (String::new(), Vec::new());
        Self { mode, limit, context, stopped: is_cut, text, shown: 0, full: false, matches }
    }

    fn head(&mut self, matches: u64, files: u64) {
        if files == 0 {
            self.text.push_str("No matches found.\n");
            return;
        }
        // Where the search stopped early, nobody knows the numbers.
        if self.stopped {
            return;
        }
        let files = count(files, "file", "files");
        let _ = match self.mode {
            Mode::Files => writeln!(self.text, "Found {files}."),
            Mode::Content | Mode::Count => {
                let matches = count(matches, "match", "matches");
                writeln!(self.text, "Found {matches} in {files}.")
            }
        };
    }

    /// One line for a file.
    fn one(&mut self, file: &Found) {
        let path = one_line(&file.path);
        let line = match self.mode {
            Mode::Count => format!("{path}: {}\n", file.matches),
            _ => format!("{path}\n"),
        };
        if self.push(&line) {
            self.shown += 1;
            self.matches.push(match self.mode {
                Mode::Count => json!({ "file": file.path, "count": file.matches }),
                _ => json!({ "file": file.path }),
            });
        }
    }

    /// The matching lines of a file, with what is around them.
    fn content(&mut self, file: &Found) {
        let mut head = format!("{}:\n", one_line(&file.path));
        let mut waiting: Vec<&Line> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut last: Option<&Line> = None;
        let with_context = file.lines.iter().any(|line| line.of.is_none());
        for (at, line) in file.lines.iter().enumerate() {
            let Some(of) = line.of else {
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
                let mark = if line.of.is_some() { ':' } else { '-' };
                let _ = writeln!(block, "  {}{mark} {}", line.number, line.text);
                last = Some(line);
            }
            if !self.push(&block) {
                return;
            }
            self.shown += u64::from(seen.insert(of));
            let mut shown = json!({ "file": file.path, "line": line.number, "content": line.text });
            if with_context {
                shown["context"] = self.around(&file.lines, at).collect();
            }
            self.matches.push(shown);
        }
        // Context behind the last match that is shown, as far as it follows at once.
        let mut block = String::new();
        for line in waiting {
            if last.is_some_and(|last| last.number + 1 == line.number) {
                let _ = writeln!(block, "  {}- {}", line.number, line.text);
                last = Some(line);
            }
        }
        self.push(&block);
        // Lines that were not even kept were too many.
        self.full |= self.shown < self.limit && (seen.len() as u64) < file.matches;
    }

    /// The lines around a match that are no matches themselves, for programs.
    fn around(&self, lines: &[Line], at: usize) -> impl Iterator<Item = Value> {
        let number = lines[at].number;
        let is_near = |line: &&Line| line.number.abs_diff(number) <= self.context;
        let before = lines[..at].iter().rev().take_while(is_near).count();
        let after = lines[at + 1..].iter().take_while(is_near).count();
        let near = lines[at - before..=at + after].iter().filter(|line| line.of.is_none());
        near.map(|line| json!({ "line": line.number, "content": line.text }))
    }

    /// Appends a block, unless it is too much.
    fn push(&mut self, block: &str) -> bool {
        self.full |= self.text.len() + block.len() > MAX_BYTES;
        if !self.full {
            self.text.push_str(block);
        }
        !self.full
    }

    fn foot(&mut self, all: u64) {
        let (one, many) = match self.mode {
            Mode::Content => ("match", "matches"),
            Mode::Files | Mode::Count => ("file", "files"),
        };
        let shown = self.shown;
        let _ = match (self.full, self.stopped) {
            (true, true) => writeln!(
                self.text,
                "(Output capped at 50 KiB: showing {}; there are more. Narrow the pattern or the path.)",
                count(shown, one, many)
            ),
            (true, false) => writeln!(
                self.text,
                "(Output capped at 50 KiB: showing {shown} of {}. Narrow the pattern or the path.)",
                count(all, one, many)
            ),
            (false, true) => writeln!(
                self.text,
                "(Stopped at {}; there are more. Narrow the pattern or raise `limit`.)",
                count(shown, one, many)
            ),
            (false, false) if shown < all => writeln!(
                self.text,
                "(Showing {shown} of {}. Narrow the pattern or raise `limit`.)",
                count(all, one, many)
            ),
            (false, false) => Ok(()),
        };
    }
}

/// What is said of what the system does not let be read.
fn unread(number: u64) -> String {
    if number == 0 {
        return String::new();
    }
    format!("({} could not be read.)\n", count(number, "file or folder", "files or folders"))
}

/// What is said of files that would be searched in one piece for too long.
fn too_large(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let files = count(files, "file over 4 MiB is", "files over 4 MiB are");
    format!("({files} too large for `multiline`, and left out; search without it.)\n")
}

/// What is said of folders on another device.
pub(super) fn elsewhere(folders: u64) -> String {
    if folders == 0 {
        return String::new();
    }
    let (folders, it) =
        (count(folders, "folder", "folders"), if folders == 1 { "it" } else { "one" });
    format!("({folders} on another device left out; name {it} as `path` to search there.)\n")
}

/// What is said of files that hold more than text.
fn in_part(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let (files, them) = (count(files, "file", "files"), if files == 1 { "it" } else { "one" });
    format!(
        "({files} with NUL bytes left out, or searched up to the first; name {them} as `path` to \
         search all as text.)\n"
    )
}

/// What is said of ignore files of which not all is heeded.
pub(super) fn cut(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let files = count(files, "ignore file has", "ignore files have");
    format!("({files} more rules than are heeded: what the last ones exclude was searched.)\n")
}

/// What is said of files that somebody may be asked about; that depends on no file's content.
pub(super) fn withheld(files: u64) -> String {
    if files == 0 {
        return String::new();
    }
    let (files, them) = (count(files, "file", "files"), if files == 1 { "it" } else { "one" });
    format!("({files} left out by the rules; name {them} as `path` to ask for it.)\n")
}

/// A number of things, such as `1 file` and `3 files`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
