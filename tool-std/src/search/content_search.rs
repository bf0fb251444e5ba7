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
use tool_sdk::{FolderEntry, ResolvedPath, ToolError, Visibility};

use super::path_glob::PathGlob;
use super::report::{FileMatches, MatchLine, OutputMode, SearchResults, SkippedCounts};
use super::walk::{FileVisitor, WalkResult, walk_tree};
use crate::read_task::ReadTask;
use crate::text::MAX_BYTES;
use crate::text::excerpt::excerpt_around;

/// The maximum number of characters of a line.
const MAX_LINE: usize = 500;

/// Files up to this size are read completely before they are searched.
const MAX_BUFFERED_FILE: usize = 1 << 20;

/// The number of bytes that are inspected to detect binary files.
const SNIFF_LEN: usize = 4096;

/// A search with more matches than the limit stops early only after this many files or bytes.
/// Smaller searches are completed, so that the newest files and the total number are known.
const EARLY_STOP_FILES: u64 = 2000;
const EARLY_STOP_BYTES: u64 = 16 << 20;

/// The maximum number of bytes of lines that a thread keeps before it drops those that are never
/// shown.
const MAX_KEPT_BYTES: usize = 8 << 20;

/// The pattern, the options and the files of a search.
pub(super) struct GrepQuery {
    pub(super) matcher: RegexMatcher,
    pub(super) searcher: SearcherBuilder,
    pub(super) include: Option<PathGlob>,
    pub(super) mode: OutputMode,
    pub(super) multiline: bool,
    pub(super) limit: u64,
    /// The number of context lines around a match.
    pub(super) context: u64,
}

/// One search, shared by its threads.
pub(super) struct ContentSearch<'a> {
    query: GrepQuery,
    look: ReadTask<'a>,
    /// The matches or files that count against the limit so far.
    counted: AtomicU64,
    /// The number of files and bytes that were searched.
    files: AtomicU64,
    bytes: AtomicU64,
    /// Whether the search stopped early.
    is_truncated: AtomicBool,
}

impl<'a> ContentSearch<'a> {
    pub(super) fn new(query: GrepQuery, look: ReadTask<'a>) -> Self {
        let (counted, files, bytes, is_truncated) = Default::default();
        Self { query, look, counted, files, bytes, is_truncated }
    }

    /// Runs until all files are searched, or until the limit is exceeded and the early-stop
    /// thresholds are reached.
    pub(super) fn run_search(self) -> Result<SearchResults, ToolError> {
        let WalkResult {
            visitors,
            unreadable: mut unread,
            other_devices: elsewhere,
            truncated_ignore_files: cut,
        } = self.search_target()?;
        let (mut files, mut withheld, mut in_part, mut too_large) = (Vec::new(), 0, 0, 0);
        for worker in visitors {
            files.extend(worker.matching_files);
            unread += worker.unread;
            withheld += worker.withheld;
            in_part += worker.partially_searched;
            too_large += worker.too_large;
        }
        files.sort_by(newest_first);
        let GrepQuery { mode, limit, context, .. } = self.query;
        let is_cut = self.is_truncated.into_inner();
        let left = SkippedCounts {
            unreadable: unread,
            too_large,
            other_devices: elsewhere,
            partially_searched: in_part,
            truncated_ignore_files: cut,
            withheld,
        };
        Ok(SearchResults { mode, limit, context, is_truncated: is_cut, skipped: left, files })
    }

    fn search_target(&self) -> Result<WalkResult<SearchWorker<'_>>, ToolError> {
        let start = &self.look.place;
        let there = start.metadata().map_err(|error| self.look.with_suggestions(error))?;
        if there.kind.is_dir() {
            return walk_tree(start, &|| self.is_finished(), || SearchWorker::for_search(self));
        }
        let (path, file) = (start.display(), start.open_file()?);
        if !self.look.is_content_visible() {
            let message =
                format_args!("`{path}` cannot be searched, because the rules deny reading it");
            return Err(ToolError::denied(message));
        }
        let mut worker = SearchWorker { is_named: true, ..SearchWorker::for_search(self) };
        let metadata = file.metadata();
        let searched = metadata.and_then(|facts| worker.search_file(&file, &facts, start));
        searched.map_err(|error| self.search_error(&path, error))?;
        if worker.is_binary {
            return Err(ToolError::failed(format_args!("`{path}` is a binary file"))
                .hint("only text can be searched"));
        }
        Ok(WalkResult {
            visitors: vec![worker],
            unreadable: 0,
            other_devices: 0,
            truncated_ignore_files: 0,
        })
    }

    /// Returns the error for a file that the call names.
    fn search_error(&self, path: &str, error: io::Error) -> ToolError {
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
    fn is_finished(&self) -> bool {
        self.has_enough(0) || self.look.stop.is_stopped()
    }

    /// Whether the limit would be exceeded with `more` matches, and the early-stop thresholds are
    /// reached.
    fn has_enough(&self, more: u64) -> bool {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let enough = read(&self.counted) + more > self.query.limit
            && (read(&self.files) >= EARLY_STOP_FILES || read(&self.bytes) >= EARLY_STOP_BYTES);
        if enough {
            self.is_truncated.store(true, Ordering::Relaxed);
        }
        enough
    }
}

/// The state of one thread.
struct SearchWorker<'a> {
    search: &'a ContentSearch<'a>,
    matcher: RegexMatcher,
    searcher: Searcher,
    /// The content of the current file, or its start.
    buffer: Vec<u8>,
    matching_files: Vec<FileMatches>,
    /// The number of bytes of lines in the matches.
    kept: usize,
    /// Files that could not be read.
    unread: u64,
    /// Files that begin like text, and were not searched after a NUL byte.
    partially_searched: u64,
    /// Files that are too large for a multiline search.
    too_large: u64,
    /// Files that the read rules hide unless the call names them.
    withheld: u64,
    /// Whether the call names the file; then it is searched as text if it begins as text.
    is_named: bool,
    /// Whether the last file is binary.
    is_binary: bool,
}

impl FileVisitor for SearchWorker<'_> {
    fn visit_file(&mut self, path: &Path, entry: &FolderEntry) {
        let search = self.search;
        if search.query.include.as_ref().is_some_and(|include| !include.matches_path(path)) {
            return;
        }
        let place = search.look.place.join(path);
        match search.look.visibility(&place) {
            Visibility::Shown => {}
            Visibility::OnRequest => return self.withheld += 1,
            _ => return,
        }
        let searched =
            entry.open_file().and_then(|(file, facts)| self.search_file(&file, &facts, &place));
        match searched {
            Ok(()) => {}
            Err(error) if search.query.multiline && is_too_large(&error) => self.too_large += 1,
            Err(_) => self.unread += 1,
        }
    }
}

impl<'a> SearchWorker<'a> {
    fn for_search(search: &'a ContentSearch<'a>) -> Self {
        Self {
            search,
            matcher: search.query.matcher.clone(),
            searcher: search.query.searcher.build(),
            buffer: vec![0; MAX_BUFFERED_FILE],
            matching_files: Vec::new(),
            kept: 0,
            unread: 0,
            partially_searched: 0,
            too_large: 0,
            withheld: 0,
            is_named: false,
            is_binary: false,
        }
    }

    /// Searches an open file.
    fn search_file(
        &mut self,
        file: &File,
        facts: &Metadata,
        place: &ResolvedPath,
    ) -> io::Result<()> {
        let (filled, is_whole) = self.fill_buffer(file, facts.len())?;
        let Self { search, matcher, searcher, buffer, is_named, .. } = self;
        let text = &buffer[..filled];
        search.files.fetch_add(1, Ordering::Relaxed);
        search.bytes.fetch_add(filled as u64, Ordering::Relaxed);
        let mut hits = MatchSink {
            search,
            matcher,
            matches: 0,
            lines: Vec::new(),
            bytes: 0,
            is_truncated: false,
        };
        // Only the searcher can decode UTF-16, in which every other byte may be 0.
        let is_utf16 = matches!(text, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        self.is_binary = !is_utf16 && memchr(0, &text[..filled.min(SNIFF_LEN)]).is_some();
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
            let rest = CancellableFile { file, search };
            searcher.search_reader(&*matcher, text.chain(rest), &mut hits)?;
        }
        // A NUL byte in the buffer counts the same in every mode. Bytes after it are not inspected
        // when a search ends early, so they do not count.
        if !*is_named && hits.matches > 0 && !is_utf16 && memchr(0, text).is_some() {
            self.partially_searched += 1;
            return Ok(());
        }
        self.partially_searched += u64::from(hits.is_truncated);
        let MatchSink { matches, lines, bytes, .. } = hits;
        if matches > 0 {
            let counted = if search.query.mode == OutputMode::Content { matches } else { 1 };
            search.counted.fetch_add(counted, Ordering::Relaxed);
            let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            self.matching_files.push(FileMatches {
                path: place.rule_path(),
                modified,
                matches,
                lines,
            });
            self.kept += bytes;
            if self.kept > MAX_KEPT_BYTES {
                self.drop_old_lines();
            }
        }
        Ok(())
    }

    /// Drops the lines of files that are too old to be shown.
    fn drop_old_lines(&mut self) {
        let mut newer = 0;
        self.matching_files.sort_by(newest_first);
        for file in &mut self.matching_files {
            if newer >= self.search.query.limit {
                file.lines = Vec::new();
            }
            newer += file.matches;
        }
        self.kept = 0;
    }

    /// Fills the buffer; returns the number of bytes, and whether that is the whole file.
    fn fill_buffer(&mut self, mut file: &File, len: u64) -> io::Result<(usize, bool)> {
        let mut filled = 0;
        while filled < MAX_BUFFERED_FILE {
            match file.read(&mut self.buffer[filled..]) {
                Ok(0) => return Ok((filled, true)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // When the metadata matches what was read, no further read is needed to detect the end.
            if filled as u64 == len && filled < MAX_BUFFERED_FILE {
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
fn newest_first(a: &FileMatches, b: &FileMatches) -> std::cmp::Ordering {
    b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path))
}

/// A file that reports its end when the call is cancelled.
struct CancellableFile<'a> {
    file: &'a File,
    search: &'a ContentSearch<'a>,
}

impl Read for CancellableFile<'_> {
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
struct MatchSink<'a> {
    search: &'a ContentSearch<'a>,
    matcher: &'a RegexMatcher,
    matches: u64,
    lines: Vec<MatchLine>,
    bytes: usize,
    /// Whether the search stopped at a NUL byte.
    is_truncated: bool,
}

impl MatchSink<'_> {
    fn push_line(&mut self, number: Option<u64>, line: &[u8], of: Option<u64>) {
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
        let text = excerpt_around(line, at, MAX_LINE);
        self.bytes += text.len();
        self.lines.push(MatchLine { number: number.unwrap_or_default(), text, match_number: of });
    }

    /// Returns the starts of the matches in lines that were found together; empty for a single
    /// line.
    fn match_starts(&self, found: &SinkMatch<'_>) -> Vec<usize> {
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

impl Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.search.query.mode == OutputMode::Files {
            self.matches += 1;
            return Ok(false);
        }
        let starts = self.match_starts(found);
        let mut starts = starts.iter().peekable();
        let mut end = 0;
        for (index, line) in found.lines().enumerate() {
            end += line.len();
            // Lines that were found together count as many matches as start in them.
            let begins = starts.next_if(|start| **start < end).is_some() || index == 0;
            while starts.next_if(|start| **start < end).is_some() {}
            self.matches += u64::from(begins);
            if self.search.query.mode == OutputMode::Content {
                let number = found.line_number().unwrap_or(1) + index as u64;
                self.push_line(Some(number), line, Some(self.matches));
            }
        }
        let is_over =
            self.search.query.mode == OutputMode::Content && self.search.has_enough(self.matches);
        Ok(!is_over && !self.search.look.stop.is_stopped())
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_truncated = end.binary_byte_offset().is_some();
        Ok(())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.push_line(line.line_number(), line.bytes(), None);
        Ok(true)
    }
}
