//! The tool `glob_files`: finds files by their names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;
use tool_sdk::{
    Context, FolderEntry, Output, ResolvedPath, State, ToolError, Visibility, Workspace,
    WorkspacePath, escape_for_display, tool,
};

use super::path_glob::PathGlob;
use super::report::{self, count_noun, truncated_ignore_files_note, withheld_note};
use super::walk::{FileVisitor, WalkResult, walk_tree};
use crate::cancel;
use crate::read_task::{self, ReadTask};
use crate::text::MAX_BYTES;

/// Find files by their names.
///
/// Hidden files are found; files that `.gitignore` and `.ignore` exclude and `.git` are not,
/// and links are not followed. The file that was changed last comes first.
#[tool(
    read,
    category = "search",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(
        name = "Glob",
        primary = pattern,
        show(pattern, path),
        summary = "Finding {pattern} in {path}"
    ),
    aliases("glob"),
    timeout = "30s",
    truncate = none,
    example = r#"{"pattern": "*.rs"}"#,
    example = r#"{"pattern": "src/**/*.{ts,tsx}", "limit": 500}"#
)]
pub async fn glob_files(
    /// Glob of the files to find, such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`; without a
    /// `/` it is compared with file names, else with paths relative to `path`.
    #[arg(length = 1..=1024)]
    pattern: String,
    /// Folder to search, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    path: WorkspacePath,
    /// How many files to show at most.
    #[arg(default = 100, range = 1..=2000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    read_task::run_blocking(path, workspace, cx, move |look| {
        let include = PathGlob::new("pattern", &pattern, &look)?;
        let search = GlobSearch { look, include, limit: limit as usize };
        let found = search.find_files()?;
        cancel::check_cancelled(search.look.stop)?;
        Ok(format_matches(&pattern, &search.look.place, found))
    })
    .await
}

/// One search, shared by its threads.
struct GlobSearch<'a> {
    look: ReadTask<'a>,
    include: PathGlob,
    limit: usize,
}

/// The matches of one thread, or of all.
#[derive(Default)]
struct GlobMatches {
    /// The newest files, up to the limit; the oldest of them is at the top of the heap.
    newest: BinaryHeap<Reverse<MatchedFile>>,
    /// The number of matching files, shown or not.
    matching: u64,
    withheld: u64,
    unreadable: u64,
    /// Folders on another device than the start of the search.
    other_devices: u64,
    /// Ignore files that were truncated.
    truncated_ignore_files: u64,
}

/// Ordered by age, the newer one is greater; with the same age, by path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MatchedFile {
    modified: SystemTime,
    path: Reverse<PathBuf>,
}

impl GlobSearch<'_> {
    fn find_files(&self) -> Result<GlobMatches, ToolError> {
        let look = &self.look;
        let worker = || GlobWorker { search: self, found: GlobMatches::default() };
        let walked = walk_tree(&look.place, &|| look.stop.is_stopped(), worker);
        let WalkResult {
            visitors,
            unreadable: unread,
            other_devices: elsewhere,
            truncated_ignore_files: cut,
        } = walked.map_err(|error| look.with_suggestions(error))?;
        let mut all = GlobMatches {
            unreadable: unread,
            other_devices: elsewhere,
            truncated_ignore_files: cut,
            ..GlobMatches::default()
        };
        for GlobWorker { found, .. } in visitors {
            all.matching += found.matching;
            all.withheld += found.withheld;
            for Reverse(file) in found.newest {
                all.insert_newest(file, self.limit);
            }
        }
        Ok(all)
    }
}

impl GlobMatches {
    fn insert_newest(&mut self, file: MatchedFile, limit: usize) {
        if self.newest.len() < limit {
            self.newest.push(Reverse(file));
        } else if let Some(mut oldest) = self.newest.peek_mut()
            && oldest.0 < file
        {
            *oldest = Reverse(file);
        }
    }

    /// Whether a file of this age may be among the newest.
    fn has_room_for(&self, modified: SystemTime, limit: usize) -> bool {
        self.newest.len() < limit
            || self.newest.peek().is_some_and(|oldest| oldest.0.modified <= modified)
    }
}

/// The state of one thread.
struct GlobWorker<'a> {
    search: &'a GlobSearch<'a>,
    found: GlobMatches,
}

impl FileVisitor for GlobWorker<'_> {
    fn visit_file(&mut self, path: &Path, entry: &FolderEntry) {
        let GlobSearch { look, include, limit } = self.search;
        if !include.matches_path(path) {
            return;
        }
        if !look.is_unfiltered() {
            match look.visibility(&look.place.join(path)) {
                Visibility::Shown => {}
                Visibility::OnRequest => return self.found.withheld += 1,
                _ => return,
            }
        }
        self.found.matching += 1;
        let modified = entry.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if self.found.has_room_for(modified, *limit) {
            self.found
                .insert_newest(MatchedFile { modified, path: Reverse(path.to_owned()) }, *limit);
        }
    }
}

fn format_matches(pattern: &str, start: &ResolvedPath, found: GlobMatches) -> Output {
    let GlobMatches {
        newest,
        matching,
        withheld: kept_back,
        unreadable: unread,
        other_devices: elsewhere,
        truncated_ignore_files: shortened,
    } = found;
    let (mut text, mut shown, mut full) = (String::new(), Vec::new(), false);
    // The order of `Reverse`: the newest comes first.
    for Reverse(file) in newest.into_sorted_vec() {
        let path = start.join(file.path.0).rule_path();
        let line = escape_for_display(&path);
        full = text.len() + line.len() > MAX_BYTES;
        if full {
            break;
        }
        text.push_str(&line);
        text.push('\n');
        shown.push(json!({ "file": path }));
    }
    let number = shown.len() as u64;
    if matching == 0 {
        text.push_str("No files found.\n");
    } else if number < matching {
        let (showing, or) = match full {
            true => ("Output capped at 50 KiB: showing", "the path"),
            false => ("Showing", "raise `limit`"),
        };
        text.push_str(&format!(
            "({showing} {number} of {}. Narrow the pattern or {or}.)\n",
            count_noun(matching, "file", "files")
        ));
    }
    if unread > 0 {
        let folders = count_noun(unread, "folder", "folders");
        text.push_str(&format!("({folders} could not be read.)\n"));
    }
    text.push_str(&report::other_devices_note(elsewhere));
    text.push_str(&truncated_ignore_files_note(shortened));
    text.push_str(&withheld_note(kept_back));
    text.pop();
    Output::text(text).metadata("shown", number).metadata("truncated", number < matching).display(
        json!({
            "type": "search",
            "pattern": pattern,
            "matches": shown,
            "total_matches": matching,
            "truncated": number < matching,
        }),
    )
}
