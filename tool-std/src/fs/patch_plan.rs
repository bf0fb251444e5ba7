//! Plans the changes of a patch: reads each file, applies its section and stages the new text.
//!
//! **Invariant:** no file of the workspace changes here; new texts of large patches are only staged
//! beside their files.

use std::panic;
use std::sync::LazyLock;
use std::thread::{self, available_parallelism};

use tool_sdk::{ErrorKind, FileTransaction, StagedWrite, StagedWrites, ToolError, Workspace};

use super::edit_target::{EditTarget, RequestedFile, hidden_mismatch_error, is_link, is_too_long};
use crate::diff::{DiffDetail, FileDiff, LineChange};
use crate::edit::find_nearest;
use crate::patch::{
    ApplyError, MatchBudget, MatchPass, PatchHunk, PatchedText, UpdateChunk, apply_chunks,
    parse_hunk,
};
use crate::text::lines::split_bom;

/// Up to this number of files, starting threads takes longer than one thread.
const SINGLE_THREAD_MAX: usize = 16;

/// The maximum number of threads.
const MAX_THREADS: usize = 4;

/// The number of threads for many files. It is cached, because querying it reads files of the
/// system.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(1, usize::from).min(MAX_THREADS));

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
        reason: &PlanOptions<'_>,
    ) -> Result<Self, ToolError> {
        let all: Vec<&ResolvedSection<'_>> = sections.iter().collect();
        let (untold, others): (Vec<_>, Vec<_>) =
            all.iter().partition(|section| section.quotes_hidden_content());
        // A staged file would reveal that the quoted lines of an unreadable file match.
        let drafts_in = reason.stage_in.filter(|_| untold.is_empty());
        let reason = &PlanOptions { stage_in: drafts_in, ..*reason };
        if !untold.is_empty() {
            // All other errors are reported first. A later error would reveal that the quoted lines
            // of an unreadable file match.
            with_verification_error(fit_sections(&others, reason))?;
            let mut untold = untold.iter();
            with_verification_error(
                untold.try_for_each(|section| section.verify_target(&section.from.read()?)),
            )?;
        }
        let mut plan = Self { changes: FileTransaction::new(), files: Vec::new() };
        let mut shown = 0;
        for fitted in with_verification_error(fit_sections(&all, reason))? {
            let FittedSection { outcome: mut done, planned: file, detail } = fitted;
            // The number of threads decides how many diffs are made in full, but not how many are
            // shown.
            match detail {
                DiffDetail::CountsOnly if shown < MAX_PREVIEW => {
                    done.diff = file.diff(DiffDetail::Full)
                }
                DiffDetail::Full if shown >= MAX_PREVIEW && sections.len() > SINGLE_THREAD_MAX => {
                    done.diff.diff.unified.clear();
                }
                _ => {}
            }
            shown += done.diff.diff.unified.len();
            plan.changes = file.add_to_changes(plan.changes)?;
            plan.files.push(done);
        }
        Ok(plan)
    }
}

/// Options for planning.
pub(super) struct PlanOptions<'r> {
    /// Whether the plan is only for the approval preview.
    pub(super) is_preview: bool,
    /// Returns whether the call was cancelled or ran out of time.
    pub(super) is_cancelled: &'r (dyn Fn() -> bool + Sync),
    /// The workspace in which new texts of many files are staged as soon as they are computed;
    /// `None` when the plan is not carried out.
    pub(super) stage_in: Option<&'r Workspace>,
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
    fn read_to_delete(&self, reason: &PlanOptions<'_>) -> Result<EditTarget, ToolError> {
        match self.path.preview_snapshot().is_none() && is_link(&self.place) {
            true => self.snapshot_link(),
            false => self.read_to_replace(reason),
        }
    }

    /// Reads a file that is replaced or deleted as a whole: the version that the approval preview
    /// showed, and no other.
    fn read_to_replace(&self, reason: &PlanOptions<'_>) -> Result<EditTarget, ToolError> {
        match reason.is_preview {
            true => self.read_for_preview(),
            false => self.previewed_or_read(),
        }
    }
}

/// A section that applies to its file.
struct FittedSection {
    outcome: PatchedFile,
    planned: PlannedFile,
    detail: DiffDetail,
}

/// The file before and after the change.
struct PlannedFile {
    from: EditTarget,
    /// The file that is overwritten at the new path.
    to: Option<EditTarget>,
    /// The new text; `None` when the file is removed.
    text: Option<NewText>,
    /// The changed lines, when the patch names them.
    changes: Option<Vec<LineChange>>,
}

/// The new text, in memory or staged.
enum NewText {
    InMemory(String),
    /// Staged beside the file. A failure is reported only after all sections have been applied.
    Staged(Result<StagedWrite, ToolError>),
}

/// Applies all sections to their files, on several threads when there are many. Returns the results
/// in the order of the sections, up to the first failure.
fn fit_sections(
    sections: &[&ResolvedSection<'_>],
    reason: &PlanOptions<'_>,
) -> Result<Vec<FittedSection>, ToolError> {
    let threads = match sections.len() {
        0..=SINGLE_THREAD_MAX => 1,
        _ => *THREADS,
    };
    let room = if sections.len() <= SINGLE_THREAD_MAX { usize::MAX } else { MAX_PREVIEW / threads };
    let drafts_in = reason.stage_in.filter(|_| sections.len() > SINGLE_THREAD_MAX);
    // Files are distributed in turns, so that each thread gets an equal part of the first ones,
    // whose diffs are shown. Each thread opens its own handles, because the kernel serializes use
    // of one handle.
    let fit = |at: usize| {
        let mine = sections.iter().copied().skip(at).step_by(threads);
        let drafts = match drafts_in.map(StagedWrites::begin).transpose() {
            Ok(drafts) => drafts,
            Err(error) => return vec![Err(error.into())],
        };
        fit_share(mine, reason, drafts.as_ref(), &MatchBudget::split_between(threads), room)
    };
    if threads == 1 {
        return fit(0).into_iter().collect();
    }
    // The current thread only waits: a new thread mostly starts on the core of its parent, where it
    // would have to wait for the parent.
    let mut parts: Vec<_> = thread::scope(|scope| {
        let start =
            |at| thread::Builder::new().spawn_scoped(scope, move || fit(at)).map_err(|_| at);
        let started: Vec<_> = (0..threads).map(start).collect();
        let done = started.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|it| panic::resume_unwind(it)),
            // When no thread can be started, the current one does the work.
            Err(at) => fit(at),
        });
        done.map(Vec::into_iter).collect()
    });
    (0..sections.len()).map_while(|at| parts[at % threads].next()).collect()
}

/// Applies the sections of one thread until one fails; `room` is the number of bytes of diffs that
/// are made in full.
fn fit_share<'s>(
    sections: impl Iterator<Item = &'s ResolvedSection<'s>>,
    reason: &PlanOptions<'_>,
    drafts: Option<&StagedWrites>,
    effort: &MatchBudget,
    mut room: usize,
) -> Vec<Result<FittedSection, ToolError>> {
    let mut all = Vec::new();
    for section in sections {
        let detail = if room > 0 { DiffDetail::Full } else { DiffDetail::CountsOnly };
        all.push(match (reason.is_cancelled)() {
            true => Err(ToolError::aborted("the call was cancelled or timed out")),
            false => section
                .fit_to_file(reason, drafts, effort, detail)
                .map(|fitted| fitted.with_staged_text(drafts)),
        });
        let Some(Ok(fitted)) = all.last() else { break };
        room = room.saturating_sub(fitted.outcome.diff.diff.unified.len());
    }
    all
}

impl ResolvedSection<'_> {
    fn fit_to_file(
        &self,
        reason: &PlanOptions<'_>,
        drafts: Option<&StagedWrites>,
        effort: &MatchBudget,
        detail: DiffDetail,
    ) -> Result<FittedSection, ToolError> {
        // Syntax errors were reported before, for all sections on one thread.
        let hunk =
            parse_hunk(self.source).map_err(|error| ToolError::failed(&error).source(error))?;
        let whole = |from: EditTarget, text: Option<String>| {
            let diff = from.diff(text.as_deref(), detail);
            let text = text.map(NewText::InMemory);
            (PlannedFile { from, to: None, text, changes: None }, MatchPass::Exact, diff)
        };
        let mut was = None;
        let (path, operation, (file, pass, diff)) = match hunk {
            PatchHunk::Add { path, content } => {
                let from = self.from.read_to_replace(reason)?;
                // An existing file is updated, even if the patch says `Add File`.
                let operation =
                    if from.exists() { FileOperation::Update } else { FileOperation::Add };
                let content = from.match_line_endings(content);
                was = from.encoding_note();
                (path, operation, whole(from, Some(content)))
            }
            PatchHunk::Delete { path } => {
                let from = self.from.read_to_delete(reason)?;
                self.verify_target(&from)?;
                (path, FileOperation::Delete, whole(from, None))
            }
            PatchHunk::Update { path, move_to, chunks } => {
                let (from, (new, diff)) =
                    self.update_file(path, &chunks, (reason, drafts), effort, detail)?;
                let to = self.to.as_ref().map(|to| to.read_to_replace(reason)).transpose()?;
                let diff = diff_of_move(diff, to.as_ref(), detail);
                let text = Some(NewText::InMemory(new.text));
                let file = PlannedFile { from, to, text, changes: Some(new.changes) };
                match move_to {
                    None => (path, FileOperation::Update, (file, new.pass, diff)),
                    Some(to) => (to, FileOperation::Move, (file, new.pass, diff)),
                }
            }
        };
        let done = PatchedFile { path: path.to_owned(), operation, diff, pass, encoding_note: was };
        Ok(FittedSection { outcome: done, planned: file, detail })
    }

    /// Reads the file and applies the chunks. The quoted lines may have moved since the approval
    /// preview.
    fn update_file(
        &self,
        path: &str,
        chunks: &[UpdateChunk<'_>],
        (reason, drafts): (&PlanOptions<'_>, Option<&StagedWrites>),
        effort: &MatchBudget,
        detail: DiffDetail,
    ) -> Result<(EditTarget, (PatchedText, FileDiff)), ToolError> {
        let make = |from: &EditTarget| {
            self.verify_target(from)?;
            let old = from.text()?;
            match apply_chunks(old, chunks, path, effort) {
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
        if reason.is_preview {
            let from = self.from.read_for_preview()?;
            let new = make(&from)?;
            return Ok((from, new));
        }
        self.from.read_to_edit(drafts, make, |(new, _)| &new.text)
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

impl FittedSection {
    /// Stages the new text beside its file. New and moved files wait until all sections have been
    /// applied.
    fn with_staged_text(mut self, drafts: Option<&StagedWrites>) -> Self {
        let is_update =
            self.outcome.operation == FileOperation::Update && self.planned.from.exists();
        if let (Some(drafts), true) = (drafts, is_update) {
            let Self { planned: PlannedFile { from, text, .. }, .. } = &mut self;
            *text = text.take().map(|text| match text {
                NewText::InMemory(text) => NewText::Staged(from.stage(drafts, text)),
                written => written,
            });
        }
        self
    }
}

impl PlannedFile {
    fn diff(&self, detail: DiffDetail) -> FileDiff {
        let new = self.text.as_ref().and_then(NewText::as_str);
        let diff = match (&self.changes, new, self.from.text()) {
            (Some(changes), Some(new), Ok(old)) => {
                self.from.diff_from_changes(old, new, changes, detail)
            }
            (_, new, _) => self.from.diff(new, detail),
        };
        diff_of_move(diff, self.to.as_ref(), detail)
    }

    fn add_to_changes(self, changes: FileTransaction) -> Result<FileTransaction, ToolError> {
        Ok(match (self.to, self.text) {
            (_, Some(NewText::Staged(draft))) => changes.write_staged(draft?),
            (Some(to), Some(NewText::InMemory(text))) => self.from.add_move(changes, to, text),
            (_, Some(NewText::InMemory(text))) => self.from.add_change(changes, Some(text)),
            (_, None) => self.from.add_change(changes, None),
        })
    }
}

impl NewText {
    fn as_str(&self) -> Option<&str> {
        match self {
            Self::InMemory(text) => Some(text),
            Self::Staged(draft) => std::str::from_utf8(draft.as_ref().ok()?.content()).ok(),
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
