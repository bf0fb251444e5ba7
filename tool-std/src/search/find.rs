//! Searches the content of files on several threads.
//!
//! **Invariant:** nothing here formats a match.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use memchr::memchr;
use tool_sdk::{FolderEntry, Located, ToolError, Visibility};

use super::include::Include;
use super::report::{Found, Left, Line, Mode, Results};
use super::walk::{Visit, Walked, walk};
use crate::look::Look;
use crate::text::MAX_BYTES;
use crate::text::excerpt::around;

/// The maximum number of characters of a line.
const MAX_LINE: usize = 500;

/// Files up to this size are read completely before they are searched.
const WHOLE: usize = 1 << 20;

/// The number of bytes that are inspected to detect binary files.
const SNIFFED: usize = 4096;

/// A search with more matches than the limit stops early only after this many files or bytes.
/// Smaller searches are completed, so that the newest files and the total number are known.
const MANY_FILES: u64 = 2000;
const MANY_BYTES: u64 = 16 << 20;

/// The maximum number of bytes of lines that a thread keeps before it drops those that are never
/// shown.
const MOST_KEPT: usize = 8 << 20;

/// The pattern, the options and the files of a search.
pub(super) struct Query {
    pub(super) matcher: RegexMatcher,
    pub(super) searcher: SearcherBuilder,
    pub(super) include: Option<Include>,
    pub(super) mode: Mode,
    pub(super) multiline: bool,
    pub(super) limit: u64,
    /// The number of context lines around a match.
    pub(super) context: u64,
}

/// One search, shared by its threads.
pub(super) struct Search<'a> {
    query: Query,
    look: Look<'a>,
    /// The matches or files that count against the limit so far.
    counted: AtomicU64,
    /// The number of files and bytes that were searched.
    files: AtomicU64,
    bytes: AtomicU64,
    /// Whether the search stopped early.
    is_cut: AtomicBool,
}

impl<'a> Search<'a> {
    pub(super) fn new(query: Query, look: Look<'a>) -> Self {
        let (counted, files, bytes, is_cut) = Default::default();
        Self { query, look, counted, files, bytes, is_cut }
    }

    /// Runs until all files are searched, or until the limit is exceeded and the early-stop
    /// thresholds are reached.
    pub(super) fn run(self) -> Result<Results, ToolError> {
        let Walked { visitors, mut unread, elsewhere, cut } = self.search()?;
        let (mut files, mut withheld, mut in_part, mut too_large) = (Vec::new(), 0, 0, 0);
        for worker in visitors {
            files.extend(worker.found);
            unread += worker.unread;
            withheld += worker.withheld;
            in_part += worker.in_part;
            too_large += worker.too_large;
        }
        files.sort_by(newest_first);
        let Query { mode, limit, context, .. } = self.query;
        let is_cut = self.is_cut.into_inner();
        let left = Left { unread, too_large, elsewhere, in_part, cut, withheld };
        Ok(Results { mode, limit, context, is_cut, left, files })
    }

    fn search(&self) -> Result<Walked<Worker<'_>>, ToolError> {
        let start = &self.look.place;
        let there = start.metadata().map_err(|error| self.look.with_similar(error))?;
        if there.kind.is_dir() {
            return walk(start, &|| self.is_over(), || Worker::of(self));
        }
        let (path, file) = (start.display(), start.open_file()?);
        if !self.look.is_told() {
            let message =
                format_args!("`{path}` cannot be searched, because the rules deny reading it");
            return Err(ToolError::denied(message));
        }
        let mut worker = Worker { is_named: true, ..Worker::of(self) };
        let metadata = file.metadata();
        let searched = metadata.and_then(|facts| worker.search(&file, &facts, start));
        searched.map_err(|error| self.unsearched(&path, error))?;
        if worker.is_binary {
            return Err(ToolError::failed(format_args!("`{path}` is a binary file"))
                .hint("only text can be searched"));
        }
        Ok(Walked { visitors: vec![worker], unread: 0, elsewhere: 0, cut: 0 })
    }

    /// Returns the error for a file that the call names.
    fn unsearched(&self, path: &str, error: io::Error) -> ToolError {
        let told = match (is_too_large(&error), self.query.multiline) {
            (false, _) => ToolError::failed(format_args!("cannot search `{path}`: {error}")),
            (true, false) => {
                let message = format_args!("cannot search `{path}`: a line of it has over 64 MiB");
                ToolError::failed(message).hint("use a command")
            }
            (true, true) => {
                let message = format_args!("`{path}` is too large for `multiline`: over 4 MiB");
                ToolError::failed(message).hint("search without it, or use a command")
            }
        };
        told.source(error)
    }

    /// Whether the search stops, because it has enough matches or the call was cancelled.
    fn is_over(&self) -> bool {
        self.has_enough(0) || self.look.stop.is_stopped()
    }

    /// Whether the limit would be exceeded with `more` matches, and the early-stop thresholds are
    /// reached.
    fn has_enough(&self, more: u64) -> bool {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let enough = read(&self.counted) + more > self.query.limit
            && (read(&self.files) >= MANY_FILES || read(&self.bytes) >= MANY_BYTES);
        if enough {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        enough
    }
}

/// The state of one thread.
struct Worker<'a> {
    search: &'a Search<'a>,
    matcher: RegexMatcher,
    searcher: Searcher,
    /// The content of the current file, or its start.
    buffer: Vec<u8>,
    found: Vec<Found>,
    /// The number of bytes of lines in the matches.
    kept: usize,
    /// Files that could not be read.
    unread: u64,
    /// Files that begin like text, and were not searched after a NUL byte.
    in_part: u64,
    /// Files that are too large for a multiline search.
    too_large: u64,
    /// Files that the read rules hide unless the call names them.
    withheld: u64,
    /// Whether the call names the file; then it is searched as text if it begins as text.
    is_named: bool,
    /// Whether the last file is binary.
    is_binary: bool,
}

impl Visit for Worker<'_> {
    fn file(&mut self, path: &Path, entry: &FolderEntry) {
        let search = self.search;
        if search.query.include.as_ref().is_some_and(|include| !include.has(path)) {
            return;
        }
        let place = search.look.place.join(path);
        match search.look.visibility(&place) {
            Visibility::Shown => {}
            Visibility::OnRequest => return self.withheld += 1,
            _ => return,
        }
        let searched =
            entry.open_file().and_then(|(file, facts)| self.search(&file, &facts, &place));
        match searched {
            Ok(()) => {}
            Err(error) if search.query.multiline && is_too_large(&error) => self.too_large += 1,
            Err(_) => self.unread += 1,
        }
    }
}

impl<'a> Worker<'a> {
    fn of(search: &'a Search<'a>) -> Self {
        Self {
            search,
            matcher: search.query.matcher.clone(),
            searcher: search.query.searcher.build(),
            buffer: vec![0; WHOLE],
            found: Vec::new(),
            kept: 0,
            unread: 0,
            in_part: 0,
            too_large: 0,
            withheld: 0,
            is_named: false,
            is_binary: false,
        }
    }

    /// Searches an open file.
    fn search(&mut self, file: &File, facts: &Metadata, place: &Located) -> io::Result<()> {
        let (filled, is_whole) = self.read(file, facts.len())?;
        let Self { search, matcher, searcher, buffer, is_named, .. } = self;
        let text = &buffer[..filled];
        search.files.fetch_add(1, Ordering::Relaxed);
        search.bytes.fetch_add(filled as u64, Ordering::Relaxed);
        let mut hits =
            Hits { search, matcher, matches: 0, lines: Vec::new(), bytes: 0, is_cut: false };
        // Only the searcher can decode UTF-16, in which every other byte may be 0.
        let is_utf16 = matches!(text, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        self.is_binary = !is_utf16 && memchr(0, &text[..filled.min(SNIFFED)]).is_some();
        if self.is_binary {
            return Ok(());
        }
        if is_whole && !is_utf16 {
            searcher.set_binary_detection(BinaryDetection::none());
            searcher.search_slice(&*matcher, text, &mut hits)?;
        } else {
            searcher.set_binary_detection(match is_named {
                true => BinaryDetection::none(),
                false => BinaryDetection::quit(0),
            });
            let rest = Stoppable { file, search };
            searcher.search_reader(&*matcher, text.chain(rest), &mut hits)?;
        }
        // A NUL byte in the buffer counts the same in every mode. Bytes after it are not inspected
        // when a search ends early, so they do not count.
        if !*is_named && hits.matches > 0 && !is_utf16 && memchr(0, text).is_some() {
            self.in_part += 1;
            return Ok(());
        }
        self.in_part += u64::from(hits.is_cut);
        let Hits { matches, lines, bytes, .. } = hits;
        if matches > 0 {
            let counted = if search.query.mode == Mode::Content { matches } else { 1 };
            search.counted.fetch_add(counted, Ordering::Relaxed);
            let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            self.found.push(Found { path: place.spelling(), modified, matches, lines });
            self.kept += bytes;
            if self.kept > MOST_KEPT {
                self.forget();
            }
        }
        Ok(())
    }

    /// Drops the lines of files that are too old to be shown.
    fn forget(&mut self) {
        let mut newer = 0;
        self.found.sort_by(newest_first);
        for file in &mut self.found {
            if newer >= self.search.query.limit {
                file.lines = Vec::new();
            }
            newer += file.matches;
        }
        self.kept = 0;
    }

    /// Fills the buffer; returns the number of bytes, and whether that is the whole file.
    fn read(&mut self, mut file: &File, len: u64) -> io::Result<(usize, bool)> {
        let mut filled = 0;
        while filled < WHOLE {
            match file.read(&mut self.buffer[filled..]) {
                Ok(0) => return Ok((filled, true)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // When the metadata matches what was read, no further read is needed to detect the end.
            if filled as u64 == len && filled < WHOLE {
                return Ok((filled, true));
            }
        }
        Ok((filled, false))
    }
}

/// Whether a file or one of its lines exceeds the memory limit of the searcher.
fn is_too_large(error: &io::Error) -> bool {
    error.to_string().contains("allocation limit")
}

/// The order of the results: the newest file first, then by path.
fn newest_first(a: &Found, b: &Found) -> std::cmp::Ordering {
    b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path))
}

/// A file that reports its end when the call is cancelled.
struct Stoppable<'a> {
    file: &'a File,
    search: &'a Search<'a>,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.search.look.stop.is_stopped() {
            return Ok(0);
        }
        let read = self.file.read(into)?;
        self.search.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Collects the matches of one file.
struct Hits<'a> {
    search: &'a Search<'a>,
    matcher: &'a RegexMatcher,
    matches: u64,
    lines: Vec<Line>,
    bytes: usize,
    /// Whether the search stopped at a NUL byte.
    is_cut: bool,
}

impl Hits<'_> {
    fn keep(&mut self, number: Option<u64>, line: &[u8], of: Option<u64>) {
        // More lines are never shown; the matches are still counted.
        if self.bytes > MAX_BYTES || self.matches > self.search.query.limit {
            return;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let at = match (of, line.len() > MAX_LINE) {
            (Some(_), true) => self.first_match(line),
            _ => 0,
        };
        let text = around(line, at, MAX_LINE);
        self.bytes += text.len();
        self.lines.push(Line { number: number.unwrap_or_default(), text, of });
    }

    /// Returns the starts of the matches in lines that were found together; empty for a single
    /// line.
    fn starts(&self, found: &SinkMatch<'_>) -> Vec<usize> {
        let mut starts = Vec::new();
        if found.lines().nth(1).is_none() {
            return starts;
        }
        let range = found.bytes_range_in_buffer();
        // The expression matched before, so it does not fail.
        let _ = self.matcher.find_iter_at(found.buffer(), range.start, |found| {
            let is_inside = found.start() < range.end;
            if is_inside {
                starts.push(found.start() - range.start);
            }
            is_inside
        });
        starts
    }

    fn first_match(&self, line: &[u8]) -> usize {
        let found = self.matcher.find(line).ok().flatten();
        found.map_or(0, |found| found.start())
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.search.query.mode == Mode::Files {
            self.matches += 1;
            return Ok(false);
        }
        let starts = self.starts(found);
        let mut starts = starts.iter().peekable();
        let mut end = 0;
        for (index, line) in found.lines().enumerate() {
            end += line.len();
            // Lines that were found together count as many matches as start in them.
            let begins = starts.next_if(|start| **start < end).is_some() || index == 0;
            while starts.next_if(|start| **start < end).is_some() {}
            self.matches += u64::from(begins);
            if self.search.query.mode == Mode::Content {
                let number = found.line_number().unwrap_or(1) + index as u64;
                self.keep(Some(number), line, Some(self.matches));
            }
        }
        let is_over =
            self.search.query.mode == Mode::Content && self.search.has_enough(self.matches);
        Ok(!is_over && !self.search.look.stop.is_stopped())
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_cut = end.binary_byte_offset().is_some();
        Ok(())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.keep(line.line_number(), line.bytes(), None);
        Ok(true)
    }
}
