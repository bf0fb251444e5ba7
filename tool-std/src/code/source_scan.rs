//! Reads the source files below a path on several threads, and passes each to a closure.
//!
//! **Invariant:** a file that the read rules hide is neither parsed nor counted by its content.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tool_sdk::{Context, FolderEntry, ResolvedPath, ToolError, Visibility, WorkStop};
use tool_std_code::{
    ExtractError, FileSymbols, SourceLanguage, StructureMatches, StructureQuery, SymbolCache,
    SymbolExtractor,
};

use crate::cancel;
use crate::read_task::ReadTask;
use crate::search::path_glob::PathGlob;
use crate::search::report::{
    count_noun, other_devices_note, truncated_ignore_files_note, unreadable_note, withheld_note,
};
use crate::search::walk::{FileVisitor, WalkResult, walk_tree};

/// The maximum size of a source file; larger ones are generated.
const MAX_FILE: u64 = 1 << 20;

/// How long one file may be parsed. A file that was written to be slow takes minutes.
const MAX_FILE_TIME: Duration = Duration::from_secs(2);

/// Which files below a path are read.
pub(super) struct SourceScan<'l> {
    task: ReadTask<'l>,
    include: Option<PathGlob>,
    language: Option<SourceLanguage>,
    cache: SymbolCache,
}

/// One source file in the hands of a closure.
pub(super) struct ScannedFile<'s> {
    /// The path as rules and results name it.
    pub(super) path: String,
    pub(super) text: &'s str,
    language: SourceLanguage,
    extractor: &'s mut SymbolExtractor,
    cache: &'s SymbolCache,
    stop: &'s WorkStop,
    started: Instant,
}

/// What a scan found and left out.
pub(super) struct ScanResult<T> {
    pub(super) items: Vec<T>,
    pub(super) counts: ScanCounts,
}

/// How many files were read, and how many were left out for which reason.
#[derive(Default)]
pub(super) struct ScanCounts {
    pub(super) files: u64,
    unreadable: u64,
    too_large: u64,
    too_slow: u64,
    /// Files of languages that the program was built without.
    unavailable: u64,
    withheld: u64,
    other_devices: u64,
    truncated_ignore_files: u64,
}

impl<'l> SourceScan<'l> {
    /// Fails for an invalid glob, and for a language that the program was built without.
    pub(super) fn new(
        task: ReadTask<'l>,
        include: Option<&str>,
        language: Option<&str>,
        cache: SymbolCache,
    ) -> Result<Self, ToolError> {
        let include = include.map(|glob| PathGlob::new("include", glob, &task)).transpose()?;
        let language = language.map(parse_language).transpose()?;
        Ok(Self { task, include, language, cache })
    }

    /// Passes each source file to `read`, and collects what `read` returns.
    pub(super) fn run<T: Send>(
        &self,
        read: impl Fn(&mut ScannedFile<'_>) -> Result<Option<T>, ExtractError> + Sync,
    ) -> Result<ScanResult<T>, ToolError> {
        let start = &self.task.place;
        let found = start.metadata().map_err(|error| self.task.with_suggestions(error))?;
        let walked = if found.kind.is_dir() {
            walk_tree(start, &|| self.task.stop.is_stopped(), || ScanWorker::new(self, &read))?
        } else {
            self.read_named_file(&read)?
        };
        cancel::check_cancelled(self.task.stop)?;
        let mut counts = ScanCounts {
            other_devices: walked.other_devices,
            truncated_ignore_files: walked.truncated_ignore_files,
            ..ScanCounts::default()
        };
        counts.unreadable = walked.unreadable;
        let mut items = Vec::new();
        for worker in walked.visitors {
            items.extend(worker.items);
            counts.add(&worker.counts);
        }
        Ok(ScanResult { items, counts })
    }

    fn read_named_file<'s, T, R>(
        &'s self,
        read: &'s R,
    ) -> Result<WalkResult<ScanWorker<'s, T, R>>, ToolError>
    where
        R: Fn(&mut ScannedFile<'_>) -> Result<Option<T>, ExtractError>,
    {
        let start = &self.task.place;
        let (path, file) = (start.display(), start.open_file()?);
        if !self.task.is_content_visible() {
            let message =
                format_args!("`{path}` cannot be searched, because the rules deny reading it");
            return Err(ToolError::denied(message));
        }
        let name = start.file_name().unwrap_or_default();
        let Some(language) = SourceLanguage::of_path(Path::new(name)) else {
            let message = format_args!("`{path}` has no known source language");
            return Err(ToolError::failed(message)
                .hint(format_args!("only files in {} have symbols", available_languages())));
        };
        if !language.is_available() {
            return Err(ToolError::failed(ExtractError::LanguageUnavailable(language)));
        }
        let mut worker = ScanWorker::new(self, read);
        worker.read_file(&file, language, start).map_err(|error| {
            ToolError::failed(format_args!("cannot read `{path}`: {error}")).source(error)
        })?;
        if worker.counts.too_large > 0 {
            let message = format_args!("`{path}` is over 1 MiB, too large to parse");
            return Err(ToolError::failed(message).hint("search its text instead"));
        }
        if worker.counts.too_slow > 0 && !self.task.stop.is_stopped() {
            let message = format_args!("`{path}` takes over 2 seconds to parse");
            return Err(ToolError::failed(message).hint("search its text instead"));
        }
        Ok(WalkResult {
            visitors: vec![worker],
            unreadable: 0,
            other_devices: 0,
            truncated_ignore_files: 0,
        })
    }
}

/// Returns the symbols that the session keeps.
pub(super) fn session_cache(cx: &Context) -> SymbolCache {
    cx.session().extension::<SymbolCache>()
}

fn parse_language(name: &str) -> Result<SourceLanguage, ToolError> {
    match SourceLanguage::from_name(name) {
        Some(language) if language.is_available() => Ok(language),
        Some(language) => {
            Err(ToolError::invalid("language", ExtractError::LanguageUnavailable(language)))
        }
        None => Err(ToolError::invalid("language", format_args!("`{name}` is not known"))
            .hint(format_args!("the languages are {}", available_languages()))),
    }
}

fn available_languages() -> String {
    let available = SourceLanguage::ALL.into_iter().filter(|language| language.is_available());
    let names: Vec<String> = available.map(|language| format!("`{}`", language.name())).collect();
    names.join(", ")
}

impl ScannedFile<'_> {
    /// Returns the symbols, from the cache when the text is known.
    pub(super) fn symbols(&mut self) -> Result<Arc<FileSymbols>, ExtractError> {
        let Self { text, language, extractor, cache, stop, started, .. } = self;
        cache.get_or_extract(*language, text, || {
            extractor.extract_symbols(*language, text, &|| is_over(stop, *started))
        })
    }

    /// Finds at most `limit` matches of a query; none in a file of another language.
    pub(super) fn find_structure(
        &mut self,
        query: &StructureQuery,
        limit: usize,
    ) -> Result<StructureMatches, ExtractError> {
        if query.language() != self.language {
            return Ok(StructureMatches::default());
        }
        let (stop, started) = (self.stop, self.started);
        self.extractor.find_structure(query, self.text, limit, &|| is_over(stop, started))
    }
}

fn is_over(stop: &WorkStop, started: Instant) -> bool {
    stop.is_stopped() || started.elapsed() > MAX_FILE_TIME
}

impl ScanCounts {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.unreadable += other.unreadable;
        self.too_large += other.too_large;
        self.too_slow += other.too_slow;
        self.unavailable += other.unavailable;
        self.withheld += other.withheld;
    }

    /// Returns the notes about what was left out, one a line.
    pub(super) fn notes(&self) -> String {
        let mut notes = unreadable_note(self.unreadable);
        for (files, reason) in [
            (self.too_large, "over 1 MiB left out"),
            (self.too_slow, "left out, because parsing takes over 2 seconds"),
            (self.unavailable, "left out, because the program was built without the language"),
        ] {
            if files > 0 {
                notes.push_str(&format!("({} {reason}.)\n", count_noun(files, "file", "files")));
            }
        }
        notes.push_str(&other_devices_note(self.other_devices));
        notes.push_str(&truncated_ignore_files_note(self.truncated_ignore_files));
        notes.push_str(&withheld_note(self.withheld));
        notes
    }
}

/// The state of one thread.
struct ScanWorker<'s, T, R> {
    scan: &'s SourceScan<'s>,
    read: &'s R,
    extractor: SymbolExtractor,
    buffer: Vec<u8>,
    items: Vec<T>,
    counts: ScanCounts,
}

impl<'s, T, R> ScanWorker<'s, T, R>
where
    R: Fn(&mut ScannedFile<'_>) -> Result<Option<T>, ExtractError>,
{
    fn new(scan: &'s SourceScan<'s>, read: &'s R) -> Self {
        let (buffer, items, counts) = Default::default();
        Self { scan, read, extractor: SymbolExtractor::new(), buffer, items, counts }
    }

    fn read_file(
        &mut self,
        file: &File,
        language: SourceLanguage,
        place: &ResolvedPath,
    ) -> io::Result<()> {
        self.buffer.clear();
        file.take(MAX_FILE + 1).read_to_end(&mut self.buffer)?;
        if self.buffer.len() as u64 > MAX_FILE {
            self.counts.too_large += 1;
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.buffer);
        let mut source = ScannedFile {
            path: place.rule_path(),
            text: &text,
            language,
            extractor: &mut self.extractor,
            cache: &self.scan.cache,
            stop: self.scan.task.stop,
            started: Instant::now(),
        };
        match (self.read)(&mut source) {
            Ok(item) => {
                self.items.extend(item);
                self.counts.files += 1;
            }
            Err(_) => self.counts.too_slow += 1,
        }
        Ok(())
    }
}

impl<T, R> FileVisitor for ScanWorker<'_, T, R>
where
    T: Send,
    R: Fn(&mut ScannedFile<'_>) -> Result<Option<T>, ExtractError> + Sync,
{
    fn visit_file(&mut self, path: &Path, entry: &FolderEntry) {
        let scan = self.scan;
        let Some(language) = SourceLanguage::of_path(path) else { return };
        if scan.language.is_some_and(|wanted| wanted != language)
            || scan.include.as_ref().is_some_and(|include| !include.matches_path(path))
        {
            return;
        }
        let place = scan.task.place.join(path);
        match scan.task.visibility(&place) {
            Visibility::Shown => {}
            Visibility::OnRequest => return self.counts.withheld += 1,
            _ => return,
        }
        if !language.is_available() {
            return self.counts.unavailable += 1;
        }
        let read = entry.open_file().and_then(|(file, _)| self.read_file(&file, language, &place));
        self.counts.unreadable += u64::from(read.is_err());
    }
}
