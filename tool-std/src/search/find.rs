//! Finds the matches of one search, on several threads.
//!
//! Files are found by the walker of ripgrep and opened through the workspace, so that what
//! is read is inside it whatever the walker met.
//!
//! **Invariant:** nothing here decides how a match is shown.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::{WalkBuilder, WalkState};
use tool_sdk::{Located, Stop, ToolError};

use super::report::{Found, Line, Mode, Results};
use crate::text::MAX_BYTES;
use crate::text::excerpt::around;

/// The most characters of one line.
const MAX_LINE: usize = 500;

/// Which files are searched.
pub(super) struct Include {
    glob: GlobMatcher,
    names_only: bool,
}

impl Include {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        let anchored = pattern.trim_start_matches("./").trim_start_matches('/');
        let glob = GlobBuilder::new(anchored).literal_separator(true).build().map_err(|error| {
            ToolError::invalid("include", error.kind())
                .hint("write a glob such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`")
        })?;
        Ok(Self { glob: glob.compile_matcher(), names_only: !pattern.contains('/') })
    }

    fn has(&self, relative: &Path) -> bool {
        match (self.names_only, relative.file_name()) {
            (true, Some(name)) => self.glob.is_match(name),
            _ => self.glob.is_match(relative),
        }
    }
}

/// What to look for, and in which files.
pub(super) struct Query {
    pub(super) matcher: RegexMatcher,
    pub(super) searcher: SearcherBuilder,
    pub(super) include: Option<Include>,
    pub(super) mode: Mode,
    pub(super) limit: u64,
}

/// One search, shared by the threads that run it.
pub(super) struct Search<'a> {
    query: Query,
    start: Located,
    stop: &'a Stop,
    /// What counts against the limit, so far.
    counted: AtomicU64,
    /// Files and folders that could not be read.
    unread: AtomicU64,
    files: Mutex<Vec<Found>>,
}

impl<'a> Search<'a> {
    pub(super) fn new(query: Query, start: Located, stop: &'a Stop) -> Self {
        let (counted, unread) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { query, start, stop, counted, unread, files: Mutex::default() }
    }

    /// Runs until everything is searched, or more is found than the limit.
    pub(super) fn run(self) -> Result<Results, ToolError> {
        self.search()?;
        let mut files = self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
        Ok(Results {
            mode: self.query.mode,
            limit: self.query.limit,
            has_more: self.counted.into_inner() > self.query.limit,
            unread: self.unread.into_inner(),
            files,
        })
    }

    fn search(&self) -> Result<(), ToolError> {
        if self.start.metadata()?.kind.is_dir() {
            self.walk();
            return Ok(());
        }
        let file = self.start.open_file()?;
        let searched = Worker::of(self).file(&self.start, file);
        searched.map_err(|error| {
            ToolError::failed(format_args!("cannot search `{}`: {error}", self.start.display()))
                .source(error)
        })
    }

    fn walk(&self) {
        let root = self.start.absolute();
        // Most of the time goes into opening files, so that more threads than cores pay.
        let threads = 2 * available_parallelism().map_or(1, usize::from);
        WalkBuilder::new(&root)
            .threads(threads)
            .hidden(false)
            .follow_links(false)
            .require_git(false)
            // What a search finds does not depend on who runs it.
            .git_global(false)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .build_parallel()
            .run(|| {
                let mut worker = Worker::of(self);
                let root = root.as_path();
                Box::new(move |entry| {
                    if self.is_over() {
                        return WalkState::Quit;
                    }
                    match entry {
                        Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                            worker.entry(root, entry.path());
                        }
                        Ok(_) => {}
                        Err(_) => {
                            self.unread.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    WalkState::Continue
                })
            });
    }

    /// Whether there is more than may be shown, or nobody waits.
    fn is_over(&self) -> bool {
        self.counted.load(Ordering::Relaxed) > self.query.limit || self.stop.is_stopped()
    }
}

/// What one thread of a search has for itself.
struct Worker<'a> {
    search: &'a Search<'a>,
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl<'a> Worker<'a> {
    fn of(search: &'a Search<'a>) -> Self {
        Self {
            search,
            matcher: search.query.matcher.clone(),
            searcher: search.query.searcher.build(),
        }
    }

    /// Searches a file that the walker met.
    fn entry(&mut self, root: &Path, path: &Path) {
        let Ok(relative) = path.strip_prefix(root) else { return };
        if self.search.query.include.as_ref().is_some_and(|include| !include.has(relative)) {
            return;
        }
        let place = self.search.start.join(relative);
        let opened = place.open_file().map_err(io::Error::other);
        if opened.and_then(|file| self.file(&place, file)).is_err() {
            self.search.unread.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn file(&mut self, place: &Located, file: File) -> io::Result<()> {
        let Self { search, matcher, searcher } = self;
        let mut hits = Hits { search, matcher, matches: 0, lines: Vec::new(), bytes: 0 };
        searcher.search_reader(
            &*matcher,
            Stoppable { file: &file, stop: search.stop },
            &mut hits,
        )?;
        let Hits { matches, lines, .. } = hits;
        if matches == 0 {
            return Ok(());
        }
        let counted = if search.query.mode == Mode::Content { matches } else { 1 };
        search.counted.fetch_add(counted, Ordering::Relaxed);
        let modified = file.metadata()?.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let found = Found { path: place.display(), modified, matches, lines };
        search.files.lock().unwrap_or_else(PoisonError::into_inner).push(found);
        Ok(())
    }
}

/// A file that has no more to read when nobody waits for it.
struct Stoppable<'a> {
    file: &'a File,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_stopped() { Ok(0) } else { self.file.read(into) }
    }
}

/// Collects the matches of one file.
struct Hits<'a> {
    search: &'a Search<'a>,
    matcher: &'a RegexMatcher,
    matches: u64,
    lines: Vec<Line>,
    bytes: usize,
}

impl Hits<'_> {
    fn keep(&mut self, number: Option<u64>, line: &[u8], of: Option<u64>) {
        // More than this is never shown; the matches are counted all the same.
        if self.bytes > MAX_BYTES {
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

    fn first_match(&self, line: &[u8]) -> usize {
        let found = self.matcher.find(line).ok().flatten();
        found.map_or(0, |found| found.start())
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.search.query.mode {
            Mode::Files => return Ok(false),
            Mode::Count => return Ok(!self.search.stop.is_stopped()),
            Mode::Content => {}
        }
        for (number, line) in (found.line_number().unwrap_or(1)..).zip(found.lines()) {
            self.keep(Some(number), line, Some(self.matches));
        }
        let others = self.search.counted.load(Ordering::Relaxed);
        Ok(others + self.matches <= self.search.query.limit && !self.search.stop.is_stopped())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.keep(line.line_number(), line.bytes(), None);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_some() {
            self.matches = 0;
        }
        Ok(())
    }
}
