//! The tool `list_dir`: lists a folder and its subfolders, with paging.

use std::io;

use serde_json::json;
use tool_sdk::{
    Context, FolderEntry, OpenFolder, Output, ResolvedPath, State, ToolError, Visibility,
    Workspace, WorkspacePath, escape_for_display, tool,
};

use crate::cancel;
use crate::read_task::{self, ReadTask};
use crate::text::MAX_BYTES;

/// List a folder and what is below it, sorted by name.
///
/// A folder ends in `/`, a symbolic link in `@`, anything that is neither a folder nor a
/// file in `?`; what is in a folder stands indented below it. Hidden and ignored files are
/// listed too, and links are not followed. The last line says how many entries are left
/// and which `offset` continues.
#[tool(
    read,
    category = "filesystem",
    permission = "read",
    approval(resources = |args, cx| args.path.read_resources(cx)),
    display(name = "List", primary = path, show(path, depth), summary = "Listing {path}"),
    aliases("ls"),
    truncate = none,
    example = r#"{"path": "src", "depth": 1}"#
)]
pub async fn list_dir(
    /// Path of the folder, relative to the workspace or absolute inside it.
    #[arg(default = ".", alias("dir_path"))]
    path: WorkspacePath,
    /// First entry to list, counting from 1.
    #[arg(default = 1, range = 1..)]
    offset: u32,
    /// How many entries to list at most.
    #[arg(default = 25, range = 1..=1000)]
    limit: u32,
    /// How many levels to go down; 1 is the folder itself.
    #[arg(default = 2, range = 1..=10)]
    depth: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let window = ListWindow { offset: offset.max(1).into(), limit: limit.into() };
    read_task::run_blocking(path, workspace, cx, move |look| {
        let place = &look.place;
        let folder = place.open_folder().map_err(|error| look.with_suggestions(error))?;
        let mut listing = DirListing::new(window, depth, &look);
        let entries =
            listing.visible_entries(place, folder).map_err(|error| look.read_error(error))?;
        listing.walk_folder(place, entries, &mut Vec::new())?;
        listing.into_output(place)
    })
    .await
}

/// Returns the name with a suffix for its kind.
fn entry_label(entry: &FolderEntry) -> String {
    let mark = match entry.kind() {
        kind if kind.is_file() => "",
        kind if kind.is_dir() => "/",
        kind if kind.is_symlink() => "@",
        _ => "?",
    };
    format!("{}{mark}", escape_for_display(&entry.name().to_string_lossy()))
}

/// The requested range of entries.
#[derive(Clone, Copy)]
struct ListWindow {
    /// The first entry, counting from 1.
    offset: u64,
    limit: u64,
}

/// Builds the text for a range of entries of a tree that is walked in order.
struct DirListing<'a> {
    window: ListWindow,
    depth: usize,
    look: &'a ReadTask<'a>,
    text: String,
    /// Entries visited so far, in the range or not.
    visited: u64,
    shown: u64,
    /// Entries that the read rules hide unless the call names them.
    withheld: u64,
    is_full: bool,
}

impl<'a> DirListing<'a> {
    fn new(window: ListWindow, depth: u32, look: &'a ReadTask<'a>) -> Self {
        let (text, depth) = (String::new(), depth as usize);
        let (visited, shown, withheld, is_full) = (0, 0, 0, false);
        Self { window, depth, look, text, visited, shown, withheld, is_full }
    }

    /// Returns the entries of a folder that may be listed, in any order.
    fn visible_entries(
        &mut self,
        place: &ResolvedPath,
        folder: OpenFolder,
    ) -> io::Result<Vec<FolderEntry>> {
        let mut entries = folder.entries()?;
        if !self.look.is_unfiltered() {
            entries.retain(|entry| self.admit_entry(&place.join(entry.name())));
        }
        Ok(entries)
    }

    /// Whether an entry may be listed. Counts the entries that are visible only on request.
    fn admit_entry(&mut self, place: &ResolvedPath) -> bool {
        let visibility = self.look.visibility(place);
        self.withheld += u64::from(visibility == Visibility::OnRequest);
        visibility == Visibility::Shown
    }

    /// Walks the entries of a folder; `above` are the labels of the folders between it and the
    /// start.
    fn walk_folder(
        &mut self,
        place: &ResolvedPath,
        mut entries: Vec<FolderEntry>,
        above: &mut Vec<String>,
    ) -> Result<(), ToolError> {
        cancel::check_cancelled(self.look.stop)?;
        let at_the_bottom = above.len() + 1 >= self.depth;
        if self.is_full && at_the_bottom {
            self.visited += entries.len() as u64;
            return Ok(());
        }
        // After the range is full, entries are only counted, so their order does not matter.
        if !self.is_full {
            entries.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        }
        for entry in entries {
            if !entry.kind().is_dir() || at_the_bottom {
                self.add_entry(&entry, "", above);
                continue;
            }
            let below = place.join(entry.name());
            match entry.open_folder().and_then(|folder| self.visible_entries(&below, folder)) {
                Ok(entries) => {
                    self.add_entry(&entry, "", above);
                    above.push(entry_label(&entry));
                    self.walk_folder(&below, entries, above)?;
                    above.pop();
                }
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    self.add_entry(&entry, " (on another device)", above);
                }
                Err(_) => self.add_entry(&entry, " (cannot be read)", above),
            }
        }
        Ok(())
    }

    /// Counts an entry, and writes it when it is in the range.
    fn add_entry(&mut self, entry: &FolderEntry, note: &str, above: &[String]) {
        self.visited += 1;
        if self.visited < self.window.offset || self.is_full {
            return;
        }
        let before = self.text.len();
        if self.shown == 0 && !above.is_empty() {
            self.text.push_str(&format!("(Continuing inside {}.)\n", above.concat()));
        }
        self.text.extend(std::iter::repeat_n("  ", above.len()));
        self.text.push_str(&entry_label(entry));
        self.text.push_str(note);
        self.text.push('\n');
        if self.text.len() > MAX_BYTES {
            self.text.truncate(before);
            self.is_full = true;
            return;
        }
        self.shown += 1;
        self.is_full = self.shown == self.window.limit;
    }

    fn into_output(self, place: &ResolvedPath) -> Result<Output, ToolError> {
        let Self { window: ListWindow { offset, .. }, visited: met, shown, withheld, .. } = self;
        if shown == 0 && offset > 1 {
            return Err(ToolError::invalid(
                "offset",
                format_args!("{offset} is past the end of the listing"),
            )
            .hint(format_args!("at this depth it has {met} entries")));
        }
        let absolute = place.absolute_path().display().to_string();
        let mut text = format!("Absolute path: {}\n{}", escape_for_display(&absolute), self.text);
        let left = met - (offset - 1) - shown;
        if met == 0 && withheld == 0 {
            text.push_str("(The folder is empty.)\n");
        }
        if left > 0 {
            let (entries, next) = (if left == 1 { "entry" } else { "entries" }, offset + shown);
            text.push_str(&format!("({left} more {entries}. Use offset={next} to continue.)\n"));
        }
        if withheld > 0 {
            text.push_str(&format!("({withheld} left out by the rules.)\n"));
        }
        text.pop();
        let path = place.rule_path();
        Ok(Output::text(text)
            .metadata("path", path.as_str())
            .metadata("entries", shown)
            .metadata("total", met)
            .metadata("truncated", left > 0)
            .display(json!({
                "type": "file",
                "path": path,
                "operation": "list",
                "entry_count": shown,
            })))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tempfile::TempDir;
    use tool_sdk::{CallId, ErrorKind, Session, ToolName};

    use super::*;

    fn context() -> Context {
        Context::new(Session::new("t"), ToolName::from_static("list_dir"), CallId::generate())
    }

    fn folder(files: &[&str]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for path in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    async fn list(
        folder: &TempDir,
        path: &str,
        (offset, limit, depth): (u32, u32, u32),
    ) -> Result<String, ToolError> {
        let workspace = State(Workspace::open([folder.path()]).unwrap().into());
        let output = list_dir(path.into(), offset, limit, depth, workspace, &context()).await?;
        let text = output.into_text();
        let (first, rest) = text.split_once('\n').unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let place = if path == "." { root } else { root.join(path) };
        assert_eq!(first, format!("Absolute path: {}", place.display()));
        Ok(rest.to_owned())
    }

    async fn listed(folder: &TempDir, path: &str, window: (u32, u32, u32)) -> String {
        list(folder, path, window).await.unwrap()
    }

    // F144
    #[tokio::test]
    async fn lists_folders_above_their_entries() {
        let folder = folder(&["b.txt", "a/two/deep.txt", "a/one.txt", "a.txt", ".hidden"]);
        assert_eq!(
            listed(&folder, ".", (1, 25, 2)).await,
            ".hidden\na/\n  one.txt\n  two/\na.txt\nb.txt"
        );
        assert_eq!(listed(&folder, ".", (1, 25, 1)).await, ".hidden\na/\na.txt\nb.txt");
        assert_eq!(listed(&folder, "a", (1, 25, 9)).await, "one.txt\ntwo/\n  deep.txt");
    }

    // F144
    #[tokio::test]
    async fn reports_the_number_of_omitted_entries() {
        let folder = folder(&["a/1", "a/2", "b", "c/3", "d"]);
        assert_eq!(
            listed(&folder, ".", (1, 2, 2)).await,
            "a/\n  1\n(5 more entries. Use offset=3 to continue.)"
        );
        assert_eq!(
            listed(&folder, ".", (3, 3, 2)).await,
            "(Continuing inside a/.)\n  2\nb\nc/\n(2 more entries. Use offset=6 to continue.)"
        );
        assert_eq!(
            listed(&folder, ".", (6, 1, 2)).await,
            "(Continuing inside c/.)\n  3\n(1 more entry. Use offset=7 to continue.)"
        );
        assert_eq!(listed(&folder, ".", (7, 9, 2)).await, "d");
    }

    // F144
    #[tokio::test]
    async fn truncates_the_listing_at_max_bytes() {
        let names: Vec<_> = (0..400).map(|n| format!("{n:0>250}")).collect();
        let folder = folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let text = listed(&folder, ".", (1, 1000, 1)).await;
        assert!(text.len() < MAX_BYTES + 100);
        assert!(text.ends_with("\n(197 more entries. Use offset=204 to continue.)"));
    }

    // F144
    #[tokio::test]
    async fn an_empty_folder_says_so() {
        let folder = folder(&[]);
        assert_eq!(listed(&folder, ".", (1, 25, 2)).await, "(The folder is empty.)");
    }

    // F144
    #[tokio::test]
    async fn an_offset_past_the_end_names_the_number_of_entries() {
        let folder = folder(&["a", "b"]);
        let error = list(&folder, ".", (3, 25, 2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        assert_eq!(
            error.to_string(),
            "`offset`: 3 is past the end of the listing\nhint: at this depth it has 2 entries"
        );
    }

    // F144
    #[tokio::test]
    async fn rejects_paths_that_are_no_folder() {
        let folder = folder(&["src/a"]);
        for (path, kind) in [
            ("src/a", ErrorKind::Failed),
            ("srk", ErrorKind::NotFound),
            ("..", ErrorKind::Denied),
            ("", ErrorKind::InvalidArgs),
        ] {
            let error = list(&folder, path, (1, 25, 2)).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{path}");
        }
        let error = list(&folder, "srk", (1, 25, 2)).await.unwrap_err();
        assert_eq!(error.suggestion(), Some("did you mean `src`?"));
    }

    // F144
    #[tokio::test]
    async fn list_dir_fails_after_the_timeout() {
        let folder = folder(&["a"]);
        let workspace = State(Workspace::open([folder.path()]).unwrap().into());
        let cx = context().with_timeout(Some(Duration::ZERO));
        let result = list_dir(".".into(), 1, 25, 2, workspace, &cx).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Aborted);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_are_marked_and_not_followed() {
        let folder = folder(&["real/a"]);
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("out")).unwrap();
        let workspace = || State(Workspace::open([folder.path()]).unwrap().into());
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        assert_eq!(listed(&folder, ".", (1, 25, 5)).await, "link@\nout@\npipe?\nreal/\n  a");
        let result = list_dir("out".into(), 1, 25, 2, workspace(), &context()).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Denied);
        for target in ["nowhere", "stray"] {
            let _ = fs::remove_file(folder.path().join("stray"));
            std::os::unix::fs::symlink(target, folder.path().join("stray")).unwrap();
            let result = list_dir("stray".into(), 1, 25, 2, workspace(), &context()).await;
            let error = result.unwrap_err();
            assert!(error.message().contains("symbolic link that leads nowhere"), "{error}");
        }
    }
}
