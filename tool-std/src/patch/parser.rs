//! The parser for patches.
//!
//! ```text
//! patch  = "*** Begin Patch" ["*** Environment ID: " id] hunk* "*** End Patch"
//! hunk   = "*** Add File: " path ("+" line)*
//!        | "*** Delete File: " path
//!        | "*** Update File: " path ["*** Move to: " path] chunk+
//! chunk  = ["@@" | ("@@ " context)+ ["@@"]] ((" " | "+" | "-") line)+ ["*** End of File"]
//! ```
//!
//! Unambiguous mistakes of models are accepted: blanks around a marker, a first chunk without `@@`,
//! an empty line instead of a blank for an empty context line.

use std::fmt;

use super::{ChunkLine, ParsedPatch, PatchHunk, PatchSection, UpdateChunk, normalize_path};
use crate::text::lines::find_lf;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ENVIRONMENT: &str = "*** Environment ID:";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// The error of an invalid patch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    /// The line of the patch, counting from 1; `None` for an error of the whole patch.
    pub(crate) line: Option<usize>,
    /// The description of the error.
    pub(crate) message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "Invalid patch hunk on line {line}: {}", self.message),
            None => write!(f, "Invalid patch: {}", self.message),
        }
    }
}

impl std::error::Error for ParseError {}

/// Parses a patch without a wrapper. The content of the sections is checked, but not kept.
pub(super) fn parse(text: &str) -> Result<ParsedPatch<'_>, ParseError> {
    let whole = |message: &str| ParseError { line: None, message: message.to_owned() };
    let text = text.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first.trim() != BEGIN {
        return Err(whole("The first line of the patch must be '*** Begin Patch'"));
    }
    let (body, last) = match rest.rsplit_once('\n') {
        Some((body, last)) => (Some(body), last),
        None => (None, rest),
    };
    if last.trim() != END {
        return Err(whole("The last line of the patch must be '*** End Patch'"));
    }
    // A patch may have no lines between the first and the last one.
    let Some(body) = body else {
        return Ok(ParsedPatch { environment: None, sections: Vec::new() });
    };

    let mut parser = PatchParser::new(body, false);
    let environment = parser.parse_environment();
    if environment == Some("") {
        return Err(whole("apply_patch environment_id cannot be empty"));
    }
    let mut sections = Vec::new();
    while let Some(line) = parser.peek() {
        let start = parser.start;
        let hunk = parser.parse_hunk(line.trim())?;
        let source = &body[start..parser.previous_end];
        let (path, moves_to) = (hunk.path(), hunk.move_to());
        let goes = moves_to.is_some() || matches!(hunk, PatchHunk::Delete { .. });
        sections.push(PatchSection { path, move_to: moves_to, is_removed: goes, source });
    }
    Ok(ParsedPatch { environment, sections })
}

/// Parses a section with its content.
pub(super) fn parse_hunk(source: &str) -> Result<PatchHunk<'_>, ParseError> {
    let mut parser = PatchParser::new(source, true);
    parser.parse_hunk(parser.peek().unwrap_or_default().trim())
}

/// A cursor over the lines of a text.
struct PatchParser<'p> {
    text: &'p str,
    /// The start and the end of the next line; the end is `None` when there is none.
    start: usize,
    end: Option<usize>,
    /// The end of the previous line.
    previous_end: usize,
    /// The number of lines before the next one.
    at: usize,
    /// Whether the content of sections is kept.
    keeps_content: bool,
}

impl<'p> PatchParser<'p> {
    fn new(text: &'p str, keeps_content: bool) -> Self {
        let end = Some(find_lf(text.as_bytes()).unwrap_or(text.len()));
        Self { text, start: 0, end, previous_end: 0, at: 0, keeps_content }
    }

    /// Returns the next line, without its line ending.
    fn peek(&self) -> Option<&'p str> {
        let line = &self.text[self.start..self.end?];
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// Moves to the next line.
    fn advance(&mut self) {
        let Some(end) = self.end else { return };
        self.end = self.text.as_bytes().get(end + 1..).map(|rest| {
            let len = find_lf(rest).unwrap_or(rest.len());
            end + 1 + len
        });
        (self.start, self.previous_end) = (end + 1, end);
        self.at += 1;
    }

    /// Takes the next line, if `wanted` accepts it.
    fn take_if<T>(&mut self, wanted: impl FnOnce(&'p str) -> Option<T>) -> Option<T> {
        let found = self.peek().and_then(wanted)?;
        self.advance();
        Some(found)
    }

    /// Returns an error about the line at an index.
    fn error_at(&self, at: usize, message: impl Into<String>) -> ParseError {
        // Line numbers count from 1, and the text begins after the first line.
        ParseError { line: Some(at + 2), message: message.into() }
    }

    fn parse_environment(&mut self) -> Option<&'p str> {
        self.take_if(|line| line.trim().strip_prefix(ENVIRONMENT).map(str::trim))
    }

    fn parse_hunk(&mut self, header: &'p str) -> Result<PatchHunk<'p>, ParseError> {
        let at = self.at;
        self.advance();
        if let Some(path) = header.strip_prefix(ADD) {
            Ok(PatchHunk::Add { path, content: self.parse_content() })
        } else if let Some(path) = header.strip_prefix(DELETE) {
            Ok(PatchHunk::Delete { path })
        } else if let Some(path) = header.strip_prefix(UPDATE) {
            self.parse_update(at, path)
        } else {
            let valid = format!("'{ADD}{{path}}', '{DELETE}{{path}}', '{UPDATE}{{path}}'");
            let message =
                format!("'{header}' is not a valid hunk header. Valid hunk headers: {valid}");
            Err(self.error_at(at, message))
        }
    }

    fn parse_content(&mut self) -> String {
        let mut content = String::new();
        while let Some(line) = self.take_if(|line| line.strip_prefix('+')) {
            if self.keeps_content {
                content.push_str(line);
                content.push('\n');
            }
        }
        content
    }

    fn parse_update(&mut self, header: usize, path: &'p str) -> Result<PatchHunk<'p>, ParseError> {
        let move_to = self.take_if(|line| line.trim_end().strip_prefix(MOVE).map(str::trim_start));
        // A move to the same path is none; the file must not be removed after writing.
        let move_to = move_to.filter(|to| normalize_path(to) != normalize_path(path));
        while self.take_if(|line| line.is_empty().then_some(())).is_some() {}

        let (first, mut chunks) = (self.at, Vec::new());
        while self.peek().is_some_and(|line| !is_header(line)) {
            let chunk = self.parse_chunk(self.at == first)?;
            if self.keeps_content {
                chunks.push(chunk);
            }
        }
        if self.at == first {
            let message = format!("Update file hunk for path '{path}' is empty");
            return Err(self.error_at(header, message));
        }
        Ok(PatchHunk::Update { path, move_to, chunks })
    }

    fn parse_chunk(&mut self, is_first: bool) -> Result<UpdateChunk<'p>, ParseError> {
        let mut next = self.take_if(parse_marker);
        if let (None, false, Some(line)) = (next, is_first, self.peek()) {
            let message =
                format!("Expected update hunk to start with a @@ context marker, got: '{line}'");
            return Err(self.error_at(self.at, message));
        }
        // Several context lines narrow down where a repeated line is meant.
        let mut contexts = Vec::new();
        while let Some(Some(context)) = next {
            contexts.push(context);
            next = self.take_if(parse_marker);
        }
        let first = self.at;
        let lines = self.parse_chunk_lines()?;
        let is_empty = self.at == first;
        let end_of_file =
            self.take_if(|line| (line.trim_end() == END_OF_FILE).then_some(())).is_some();
        if is_empty {
            let at = if end_of_file { self.at - 1 } else { self.at };
            return Err(self.error_at(at, "Update hunk does not contain any lines"));
        }
        if end_of_file {
            while self.take_if(|line| line.trim().is_empty().then_some(())).is_some() {}
        }
        Ok(UpdateChunk { contexts, lines, end_of_file })
    }

    fn parse_chunk_lines(&mut self) -> Result<Vec<ChunkLine<'p>>, ParseError> {
        let (first, mut lines) = (self.at, Vec::new());
        while let Some(end) = self.end {
            let line = &self.text.as_bytes()[self.start..end];
            // Most lines can be classified by their first byte.
            if !matches!(line, [b' ' | b'+' | b'-', ..] | [] | [b'\r']) {
                break;
            }
            if self.keeps_content {
                lines.extend(self.peek().and_then(parse_chunk_line));
            }
            self.advance();
        }
        match self.peek() {
            Some(line) if self.at == first && line.trim_end() != END_OF_FILE => {
                let message = format!(
                    "Unexpected line found in update hunk: '{line}'. Every line should start \
                     with ' ' (context line), '+' (added line), or '-' (removed line)"
                );
                Err(self.error_at(self.at, message))
            }
            _ => Ok(lines),
        }
    }
}

/// Parses a `@@` marker with an optional context line.
fn parse_marker(line: &str) -> Option<Option<&str>> {
    match line.strip_prefix("@@")? {
        rest if rest.trim().is_empty() => Some(None),
        rest => rest.strip_prefix(' ').map(Some),
    }
}

fn parse_chunk_line(line: &str) -> Option<ChunkLine<'_>> {
    match line.as_bytes().first() {
        None => Some(ChunkLine::Keep("")),
        Some(b' ') => Some(ChunkLine::Keep(&line[1..])),
        Some(b'-') => Some(ChunkLine::Remove(&line[1..])),
        Some(b'+') => Some(ChunkLine::Add(&line[1..])),
        Some(_) => None,
    }
}

/// Whether a line is a section header, which ends the chunks before it. A header with a leading
/// blank is a context line.
fn is_header(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|header| line.starts_with(header))
}
