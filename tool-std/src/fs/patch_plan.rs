//! Plans the changes of a patch: reads each file and applies its section.
//!
//! **Invariant:** no file changes here.

use tool_sdk::{ErrorKind, FileTransaction, ToolError};

use super::edit_target::{EditTarget, RequestedFile, hidden_mismatch_error, is_link, is_too_long};
use crate::diff::{DiffDetail, FileDiff};
use crate::edit::find_nearest;
use crate::patch::{
    ApplyError, MatchBudget, MatchPass, PatchHunk, PatchedText, UpdateChunk, apply_chunks,
    parse_hunk,
};
use crate::text::lines::split_bom;

/// Up to this number of files, the diff of each is made in full, so that a long diff does not hide
/// the short ones after it.
const ALWAYS_FULL_DIFFS: usize = 16;

/// The maximum size of all diffs together in an approval preview, in bytes.
pub(super) const MAX_PREVIEW: usize = 256 * 1024;

/// A patch that applies to its files.
pub(super) struct PatchPlan {
    pub(super) changes: FileTransaction,
    pub(super) files: Vec<PatchedFile>,
}

/// The outcome for one file.
pub(super) struct PatchedFile {
    /// The path as the patch writes it.
    pub(super) path: String,
    pub(super) operation: FileOperation,
    pub(super) diff: FileDiff,
    pub(super) pass: MatchPass,
    /// A note on the old encoding, when the replaced file was not UTF-8 text.
    pub(super) encoding_note: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileOperation {
    Add,
    Update,
    Move,
    Delete,
}

impl PatchPlan {
    /// Reads every file and computes its new text.
    pub(super) fn new(
        sections: &[ResolvedSection<'_>],
        options: &PlanOptions<'_>,
    ) -> Result<Self, ToolError> {
        let (hidden, others): (Vec<_>, Vec<_>) =
            sections.iter().partition(|section| section.quotes_hidden_content());
        if !hidden.is_empty() {
            // All other errors are reported first. A later error would reveal that the quoted lines
            // of an unreadable file match.
            Self::apply_sections(&others, options)?;
            let verify =
                |section: &&ResolvedSection<'_>| section.verify_target(&section.from.read()?);
            with_verification_error(hidden.iter().try_for_each(verify))?;
        }
        Self::apply_sections(&sections.iter().collect::<Vec<_>>(), options)
    }

    /// Applies the sections in order, up to the first failure.
    fn apply_sections(
        sections: &[&ResolvedSection<'_>],
        options: &PlanOptions<'_>,
    ) -> Result<Self, ToolError> {
        let mut plan = Self { changes: FileTransaction::new(), files: Vec::new() };
        let budget = MatchBudget::default();
        let mut diff_bytes = 0;
        for section in sections {
            if (options.is_cancelled)() {
                return Err(ToolError::aborted("the call was cancelled or timed out"));
            }
            let detail = match sections.len() <= ALWAYS_FULL_DIFFS || diff_bytes < MAX_PREVIEW {
                true => DiffDetail::Full,
                false => DiffDetail::CountsOnly,
            };
            let applied = section.apply_to_file(options, &budget, detail);
            let (file, change) = with_verification_error(applied)?;
            diff_bytes += file.diff.diff.unified.len();
            plan.changes = change.add_to(plan.changes);
            plan.files.push(file);
        }
        Ok(plan)
    }
}

/// Options for planning.
pub(super) struct PlanOptions<'r> {
    /// Whether the plan is only for the approval preview.
    pub(super) is_preview: bool,
    /// Returns whether the call was cancelled or ran out of time.
    pub(super) is_cancelled: &'r dyn Fn() -> bool,
}

/// A section of a patch with its resolved paths.
pub(super) struct ResolvedSection<'p> {
    pub(super) source: &'p str,
    pub(super) from: RequestedFile<'p>,
    pub(super) to: Option<RequestedFile<'p>>,
}

impl RequestedFile<'_> {
    /// Reads the file to delete. A dangling link is deleted itself, as long as no preview showed a
    /// file there.
    fn read_to_delete(&self, options: &PlanOptions<'_>) -> Result<EditTarget, ToolError> {
        match self.path.preview_snapshot().is_none() && is_link(&self.place) {
            true => self.snapshot_link(),
            false => self.read_to_replace(options),
        }
    }

    /// Reads a file that is replaced or deleted as a whole: the version that the approval preview
    /// showed, and no other.
    fn read_to_replace(&self, options: &PlanOptions<'_>) -> Result<EditTarget, ToolError> {
        match options.is_preview {
            true => self.read_for_preview(),
            false => self.previewed_or_read(),
        }
    }
}

/// The file before and after the change.
struct PlannedChange {
    from: EditTarget,
    /// The file that is overwritten at the new path.
    to: Option<EditTarget>,
    /// The new text; `None` when the file is removed.
    text: Option<String>,
}

impl ResolvedSection<'_> {
    fn apply_to_file(
        &self,
        options: &PlanOptions<'_>,
        budget: &MatchBudget,
        detail: DiffDetail,
    ) -> Result<(PatchedFile, PlannedChange), ToolError> {
        // Syntax errors were reported before, for all sections.
        let hunk =
            parse_hunk(self.source).map_err(|error| ToolError::failed(&error).source(error))?;
        let whole = |from: EditTarget, text: Option<String>| {
            let diff = from.diff(text.as_deref(), detail);
            (PlannedChange { from, to: None, text }, MatchPass::Exact, diff)
        };
        let mut encoding_note = None;
        let (path, operation, (change, pass, diff)) = match hunk {
            PatchHunk::Add { path, content } => {
                let from = self.from.read_to_replace(options)?;
                // An existing file is updated, even if the patch says `Add File`.
                let operation =
                    if from.exists() { FileOperation::Update } else { FileOperation::Add };
                let content = from.match_line_endings(content);
                encoding_note = from.encoding_note();
                (path, operation, whole(from, Some(content)))
            }
            PatchHunk::Delete { path } => {
                let from = self.from.read_to_delete(options)?;
                self.verify_target(&from)?;
                (path, FileOperation::Delete, whole(from, None))
            }
            PatchHunk::Update { path, move_to, chunks } => {
                let (from, (new, diff)) =
                    self.update_file(path, &chunks, options, budget, detail)?;
                let to = self.to.as_ref().map(|to| to.read_to_replace(options)).transpose()?;
                let diff = diff_of_move(diff, to.as_ref(), detail);
                let change = PlannedChange { from, to, text: Some(new.text) };
                match move_to {
                    None => (path, FileOperation::Update, (change, new.pass, diff)),
                    Some(to) => (to, FileOperation::Move, (change, new.pass, diff)),
                }
            }
        };
        let path = path.to_owned();
        Ok((PatchedFile { path, operation, diff, pass, encoding_note }, change))
    }

    /// Reads the file and applies the chunks. The quoted lines may have moved since the approval
    /// preview.
    fn update_file(
        &self,
        path: &str,
        chunks: &[UpdateChunk<'_>],
        options: &PlanOptions<'_>,
        budget: &MatchBudget,
        detail: DiffDetail,
    ) -> Result<(EditTarget, (PatchedText, FileDiff)), ToolError> {
        let make = |from: &EditTarget| {
            self.verify_target(from)?;
            let old = from.text()?;
            match apply_chunks(old, chunks, path, budget) {
                // An unreadable file only reveals success through an actual change.
                Ok(new) if !from.is_visible() && new.text == old => Err(hidden_mismatch_error()),
                Ok(new) if !is_too_long(&new.text) => {
                    // The diff is made while the text is known to be UTF-8.
                    let diff = from.diff_from_changes(old, &new.text, &new.changes, detail);
                    Ok((new, diff))
                }
                Ok(_) if !from.is_visible() => Err(hidden_mismatch_error()),
                Ok(_) => Err(ToolError::failed(format_args!(
                    "`{}` would have more than 64 MiB or two million lines",
                    from.display_path()
                ))
                .hint("use a command")),
                Err(error) => Err(mismatch_error(from, error)),
            }
        };
        if options.is_preview {
            let from = self.from.read_for_preview()?;
            let new = make(&from)?;
            return Ok((from, new));
        }
        self.from.read_to_edit(make, |(new, _)| &new.text)
    }

    /// Fails for a missing file, and for a move of a file that may not be read.
    fn verify_target(&self, from: &EditTarget) -> Result<(), ToolError> {
        if !from.exists() {
            // The file may have been created since the approval preview.
            let now = self.from.read()?;
            return Err(match now.exists() {
                true => now.conflict_error(),
                false => self.missing_file_error(from),
            });
        }
        if self.to.is_some() && !from.is_visible() {
            // Its content could become readable under the new name.
            let message =
                format_args!("`{}` may not be read, so it keeps its name", from.display_path());
            return Err(ToolError::denied(message).hint("change it where it is, without `Move to`"));
        }
        Ok(())
    }

    /// Returns the error for a missing file.
    fn missing_file_error(&self, from: &EditTarget) -> ToolError {
        let path = from.display_path();
        match parse_hunk(self.source) {
            Ok(PatchHunk::Update { .. }) => ToolError::failed(format_args!(
                "Failed to read file to update: there is no `{path}`"
            )),
            _ => ToolError::failed(format_args!("there is no `{path}`")),
        }
    }

    /// Whether the result depends on the content of a file that may not be read.
    fn quotes_hidden_content(&self) -> bool {
        !self.from.is_visible && matches!(parse_hunk(self.source), Ok(PatchHunk::Update { .. }))
    }
}

impl PlannedChange {
    fn add_to(self, changes: FileTransaction) -> FileTransaction {
        match (self.to, self.text) {
            (Some(to), Some(text)) => self.from.add_move(changes, to, text),
            (_, text) => self.from.add_change(changes, text),
        }
    }
}

/// Returns the diff of a moved file, including the file that is overwritten at `to`.
fn diff_of_move(diff: FileDiff, to: Option<&EditTarget>, detail: DiffDetail) -> FileDiff {
    match to {
        Some(to) => diff.with_move(&to.spelling(), detail).merge(to.diff(None, detail)),
        None => diff,
    }
}

/// Adds the prefix "apply_patch verification failed", which models know, to an error of the patch
/// or its files. No file has changed then.
pub(super) fn with_verification_error<T>(result: Result<T, ToolError>) -> Result<T, ToolError> {
    result.map_err(|error| match error.kind() {
        kind @ (ErrorKind::Failed | ErrorKind::NotFound | ErrorKind::InvalidArgs) => {
            let why = error.message();
            let told = ToolError::new(kind, format_args!("apply_patch verification failed: {why}"));
            let told = match error.suggestion() {
                Some(hint) => told.hint(hint),
                None => told,
            };
            told.source(error)
        }
        _ => error,
    })
}

/// Returns the error for a chunk that does not match, with the most similar lines as a hint.
fn mismatch_error(target: &EditTarget, error: ApplyError) -> ToolError {
    if !target.is_visible() {
        return hidden_mismatch_error();
    }
    let quoted = match &error {
        ApplyError::ContextNotFound { context, .. } => context,
        ApplyError::LinesNotFound { lines, .. } => lines,
        ApplyError::BudgetExhausted { .. } => return ToolError::failed(&error).source(error),
    };
    // A byte order mark is not part of the first line.
    let near =
        target.text().ok().and_then(|text| find_nearest(split_bom(text).1, split_bom(quoted).1));
    let told = ToolError::failed(&error);
    match near {
        _ if is_line_range(quoted) => told.hint(
            "a hunk has no line numbers: begin it with `@@`, or with `@@ ` and a line above it",
        ),
        Some(near) if near.is_identical() => told.hint(format_args!(
            "line {} says that, and is not looked at: hunks go from top to bottom, each below \
             its `@@` line, and those with `*** End of File` are at the end",
            near.first
        )),
        Some(near) => told.hint(near),
        None => told.hint("read the file again; nothing was changed"),
    }
    .source(error)
}

/// Whether a hunk header has line numbers as in unified diffs, such as `@@ -1,3 +1,4 @@`.
fn is_line_range(context: &str) -> bool {
    let mut words = context.split_whitespace();
    let mut is_count = |sign| {
        let count = words.next().and_then(|word| word.strip_prefix(sign)).unwrap_or_default();
        count.starts_with(|c: char| c.is_ascii_digit())
    };
    is_count('-') && is_count('+') && words.next() == Some("@@")
}

impl FileOperation {
    pub(super) fn status_letter(self) -> char {
        match self {
            Self::Add => 'A',
            Self::Update | Self::Move => 'M',
            Self::Delete => 'D',
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Add => "create",
            Self::Update => "edit",
            Self::Move => "move",
            Self::Delete => "delete",
        }
    }
}
