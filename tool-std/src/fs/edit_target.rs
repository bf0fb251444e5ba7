//! The file that a tool edits: its current content, the content of the approval preview and the
//! change.
//!
//! **Invariant:** nothing about the content of an unreadable file is revealed, except whether a
//! change was made.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tool_sdk::{
    Context, ErrorKind, FileTransaction, ResolvedPath, Snapshot, ToolError, VisibilityFilter,
    WorkStop, Workspace, WorkspacePath,
};

use crate::diff::{DiffDetail, FileDiff, LineChange, is_same_change};
use crate::read_task::is_content_visible;
use crate::text::lines::{
    default_line_ending, has_too_many_lines, split_bom, with_line_endings_of,
};

/// The largest file that can be edited; the tool descriptions name it. Old and new text are in
/// memory at the same time.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The time limit for making an approval preview.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a change is tried again because other processes change the same files.
const CONFLICT_TIMEOUT: Duration = Duration::from_secs(10);

/// Commits a change that `plan` makes from the current files, and makes it again when another
/// process changed one of the files in between. So processes that edit different places of a file
/// all succeed, in turns. A conflict that `plan` itself reports is final.
pub(super) fn commit_in_turn<T>(
    stop: &WorkStop,
    mut plan: impl FnMut() -> Result<(FileTransaction, T), ToolError>,
) -> Result<T, ToolError> {
    let started = Instant::now();
    loop {
        let (changes, made) = plan()?;
        stop.hold()?;
        match changes.commit(|| stop.is_stopped()).map_err(ToolError::from) {
            Ok(()) => return Ok(made),
            Err(error)
                if error.kind() == ErrorKind::Conflict
                    && started.elapsed() < CONFLICT_TIMEOUT
                    && !stop.is_stopped() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the error for an edit that does not match a file that may not be read.
///
/// The error is the same for every mismatch and every file. Otherwise a model could learn from an
/// error for one of several edits or files that the others match.
pub(super) fn hidden_mismatch_error() -> ToolError {
    ToolError::failed(
        "the edit does not match a file that may not be read, or changes nothing in it",
    )
    .hint("read access is denied, so no details about the file are shown")
}

/// Whether a text is too long to be edited again.
pub(super) fn is_too_long(text: &str) -> bool {
    text.len() as u64 > MAX_FILE || has_too_many_lines(text.as_bytes())
}

/// A file to edit, with a snapshot of its content.
pub(super) struct EditTarget {
    place: ResolvedPath,
    snapshot: Snapshot,
    is_visible: bool,
}

/// A path that a call names: resolved, and whether its content may be revealed.
pub(super) struct RequestedFile<'p> {
    pub(super) path: &'p WorkspacePath,
    pub(super) place: ResolvedPath,
    pub(super) is_visible: bool,
}

impl<'p> RequestedFile<'p> {
    /// Creates the file and applies the read rules to it.
    pub(super) fn new(
        path: &'p WorkspacePath,
        place: ResolvedPath,
        workspace: &Workspace,
        sight: &VisibilityFilter,
    ) -> Self {
        let is_visible = is_content_visible(path, &place, workspace, sight);
        Self { path, place, is_visible }
    }

    /// Resolves the path for a call that has not run yet.
    pub(super) fn resolve(path: &'p WorkspacePath, cx: &Context) -> Result<Self, ToolError> {
        let workspace = cx.state::<Workspace>()?;
        let place = path.locate(&workspace)?;
        Ok(Self::new(path, place, &workspace, &cx.visible_files("read")))
    }

    /// Whether the content may be revealed without approval: the file is in the workspace and no
    /// rule hides it.
    fn is_freely_visible(&self) -> bool {
        self.is_visible && !self.place.is_outside()
    }

    /// Reads the file; a missing file is not an error.
    pub(super) fn read(&self) -> Result<EditTarget, ToolError> {
        Ok(self.to_target(self.take_snapshot()?))
    }

    /// Reads the file and keeps the snapshot for comparison after the approval.
    pub(super) fn read_for_preview(&self) -> Result<EditTarget, ToolError> {
        Ok(self.to_target(self.path.keep_preview_snapshot(self.take_snapshot()?).clone()))
    }

    /// Takes a snapshot of the symbolic link itself.
    pub(super) fn snapshot_link(&self) -> Result<EditTarget, ToolError> {
        Ok(self.to_target(self.path.keep_preview_snapshot(self.place.snapshot_link()?).clone()))
    }

    /// Reads the file and applies `make` to it; `text` returns the new text of the result.
    ///
    /// When an approval preview showed the change, the same lines must be added and removed now,
    /// though possibly at another position. Anything else is a conflict.
    pub(super) fn read_to_edit<T>(
        &self,
        make: impl Fn(&EditTarget) -> Result<T, ToolError>,
        text: impl Fn(&T) -> &str,
    ) -> Result<(EditTarget, T), ToolError> {
        let now = self.read()?;
        let made = make(&now)?;
        let is_as_shown = |shown: &EditTarget| {
            let was = make(shown).ok()?;
            let change = [shown.text().ok()?, text(&was)];
            Some(is_same_change(change, [now.text().ok()?, text(&made)]))
        };
        match self.path.preview_snapshot() {
            Some(shown)
                if shown.content() != now.bytes()
                    && is_as_shown(&self.to_target(shown.clone())) != Some(true) =>
            {
                Err(now.conflict_error())
            }
            _ => Ok((now, made)),
        }
    }

    /// Returns the version that the approval preview showed, or the current one without a preview.
    pub(super) fn previewed_or_read(&self) -> Result<EditTarget, ToolError> {
        match self.path.preview_snapshot() {
            Some(before) => Ok(self.to_target(before.clone())),
            None => self.read(),
        }
    }

    fn take_snapshot(&self) -> Result<Snapshot, ToolError> {
        let before = self.place.snapshot(MAX_FILE)?;
        if before.content().is_some_and(has_too_many_lines) {
            return Err(ToolError::failed(format_args!(
                "`{}` has more than two million lines, too many to change it",
                self.place.display()
            ))
            .hint("use a command"));
        }
        Ok(before)
    }

    fn to_target(&self, before: Snapshot) -> EditTarget {
        EditTarget { place: self.place.clone(), snapshot: before, is_visible: self.is_visible }
    }
}

impl EditTarget {
    /// Whether the content may be revealed; if not, a mismatch is reported as
    /// [`hidden_mismatch_error`].
    pub(super) fn is_visible(&self) -> bool {
        self.is_visible
    }

    /// Returns the path for users and models.
    pub(super) fn display_path(&self) -> String {
        self.place.display()
    }

    /// Returns the path for programs.
    pub(super) fn spelling(&self) -> String {
        self.place.rule_path()
    }

    /// Whether the file exists.
    pub(super) fn exists(&self) -> bool {
        self.snapshot.content().is_some()
    }

    /// Returns the content in its own encoding.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.snapshot.content()
    }

    /// Returns the content as UTF-8 text.
    pub(super) fn text(&self) -> Result<&str, ToolError> {
        let Some(content) = self.snapshot.content() else {
            return Err(ToolError::not_found(format_args!(
                "there is no `{}`",
                self.display_path()
            )));
        };
        std::str::from_utf8(content).map_err(|error| {
            if !self.is_visible {
                return hidden_mismatch_error();
            }
            let message =
                format_args!("`{}` is not UTF-8 text, and cannot be edited", self.display_path());
            ToolError::failed(message).source(error)
        })
    }

    /// Describes the change of encoding, when the old content was not UTF-8 text and may be
    /// revealed.
    pub(super) fn encoding_note(&self) -> Option<&'static str> {
        match self.bytes().filter(|_| self.is_visible)? {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                Some("was UTF-16 text with a byte order mark, and is UTF-8 without one now")
            }
            _ if self.text().is_err() => Some("was not UTF-8 text, and is now"),
            _ => None,
        }
    }

    /// Returns the new text with the byte order mark and the line endings of the old one.
    pub(super) fn match_line_endings(&self, content: String) -> String {
        let Some(old) = self.bytes().map(String::from_utf8_lossy) else { return content };
        let (bom, old) = split_bom(&old);
        let new = split_bom(&content).1;
        match old.contains(['\n', '\r']) {
            true => format!("{bom}{}", with_line_endings_of(new, old, default_line_ending(old))),
            // The old text has no line ending to follow.
            false => format!("{bom}{new}"),
        }
    }

    /// Returns the error for a file that changed since the approval preview.
    pub(super) fn conflict_error(&self) -> ToolError {
        ToolError::conflict(format_args!(
            "`{}` was changed since it was looked at for this call, and was not written",
            self.display_path()
        ))
        .hint("read it again, and base the change on its current content")
    }

    /// Returns the diff to the new text; `None` removes the file.
    pub(super) fn diff(&self, new: Option<&str>, detail: DiffDetail) -> FileDiff {
        if !self.is_visible && self.exists() {
            return FileDiff::hidden(&self.spelling());
        }
        let old = self.snapshot.content().map(|content| match self.text() {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(content),
        });
        FileDiff::new(&self.spelling(), old.as_deref(), new, detail)
    }

    /// Returns the diff to the new text from known changes; `old` must be [`text`](Self::text).
    pub(super) fn diff_from_changes(
        &self,
        old: &str,
        new: &str,
        changes: &[LineChange],
        detail: DiffDetail,
    ) -> FileDiff {
        match self.is_visible {
            true => FileDiff::from_changes(&self.spelling(), old, new, changes, detail),
            false => FileDiff::hidden(&self.spelling()),
        }
    }

    /// Adds the change to the transaction; `None` removes the file.
    pub(super) fn add_change(
        self,
        changes: FileTransaction,
        new: Option<String>,
    ) -> FileTransaction {
        match new {
            Some(text) => changes.write(self.place, self.snapshot, text),
            None => changes.remove(self.place, self.snapshot),
        }
    }

    /// Adds a move to the path of `to` with a new text.
    pub(super) fn add_move(
        self,
        changes: FileTransaction,
        to: Self,
        text: String,
    ) -> FileTransaction {
        changes.rename((self.place, self.snapshot), (to.place, to.snapshot), text)
    }
}

/// Whether the path is a symbolic link that leads nowhere.
pub(super) fn is_link(place: &ResolvedPath) -> bool {
    place.metadata().is_ok_and(|there| there.kind.is_symlink())
}

/// Rejects a path with a trailing separator, which names a folder.
pub(super) fn check_file_path(path: &str) -> Result<(), ToolError> {
    if !path.ends_with(std::path::is_separator) {
        return Ok(());
    }
    Err(ToolError::invalid("path", format_args!("`{path}` names a folder, not a file"))
        .hint("name a file in it; missing folders are made on the way"))
}

/// Returns the approval preview. A permanent failure ends the call, if it may be revealed for all
/// `paths` without approval; otherwise the preview shows the error.
pub(super) fn preview_or_error<'p>(
    shown: Result<Value, ToolError>,
    paths: impl IntoIterator<Item = &'p WorkspacePath>,
    cx: &Context,
) -> Result<Option<Value>, ToolError> {
    let is_free =
        |path| RequestedFile::resolve(path, cx).is_ok_and(|named| named.is_freely_visible());
    match shown {
        Ok(shown) => Ok(Some(shown)),
        Err(error) if is_permanent_failure(&error) && paths.into_iter().all(is_free) => Err(error),
        Err(error) => Ok(Some(json!({ "error": error.to_string() }))),
    }
}

/// Whether the call fails in the same way whenever it runs.
fn is_permanent_failure(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Failed | ErrorKind::NotFound | ErrorKind::InvalidArgs)
}

/// Returns a function that tells whether the preview timed out or the call was cancelled.
pub(super) fn preview_deadline(cx: &Context) -> impl Fn() -> bool {
    let until = Instant::now() + PREVIEW_TIMEOUT;
    move || cx.is_cancelled() || Instant::now() >= until
}

/// Returns the data for drawing the diff of one file.
pub(super) fn diff_display(operation: &str, diff: &FileDiff) -> Value {
    let mut data = diff.to_json();
    data["type"] = "diff".into();
    data["operation"] = operation.into();
    data
}

/// Formats the added and removed lines, such as ` (+2 -1 lines)`.
pub(super) fn format_counts(diff: &FileDiff) -> Cow<'static, str> {
    match diff.line_counts() {
        None => "".into(),
        Some((0, 0)) => " (no line changed)".into(),
        Some((added, removed)) => format!(" (+{added} -{removed} lines)").into(),
    }
}
