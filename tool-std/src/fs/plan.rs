//! Plans the changes of a patch: reads each file, applies its section and stages the new text.
//!
//! **Invariant:** no file of the workspace changes here; new texts of large patches are only staged
//! beside their files.

use std::panic;
use std::sync::LazyLock;
use std::thread::{self, available_parallelism};

use tool_sdk::{Changes, Draft, Drafts, ErrorKind, ToolError, Workspace};

use super::target::{Named, Target, is_link, is_too_long, unfit_untold};
use crate::diff::{Change, Detail, FileDiff};
use crate::edit::nearest;
use crate::patch::{ApplyError, Chunk, Effort, Hunk, Pass, Updated, hunk, update};
use crate::text::lines::split_bom;

/// Up to this number of files, starting threads takes longer than one thread.
const FEW: usize = 16;

/// The maximum number of threads.
const MOST: usize = 4;

/// The number of threads for many files. It is cached, because querying it reads files of the
/// system.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(1, usize::from).min(MOST));

/// The maximum size of all diffs together in an approval preview, in bytes.
pub(super) const MAX_PREVIEW: usize = 256 * 1024;

/// A patch that applies to its files.
pub(super) struct Plan {
    pub(super) changes: Changes,
    pub(super) done: Vec<Done>,
}

/// The outcome for one file.
pub(super) struct Done {
    /// The path as the patch writes it.
    pub(super) path: String,
    pub(super) operation: Operation,
    pub(super) diff: FileDiff,
    pub(super) pass: Pass,
    /// A note on the old encoding, when the replaced file was not UTF-8 text.
    pub(super) was: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Add,
    Update,
    Move,
    Delete,
}

impl Plan {
    /// Reads every file and computes its new text.
    pub(super) fn new(sections: &[Section<'_>], reason: &Reason<'_>) -> Result<Self, ToolError> {
        let all: Vec<&Section<'_>> = sections.iter().collect();
        let (untold, others): (Vec<_>, Vec<_>) =
            all.iter().partition(|section| section.quotes_what_is_untold());
        // A staged file would reveal that the quoted lines of an unreadable file match.
        let drafts_in = reason.drafts_in.filter(|_| untold.is_empty());
        let reason = &Reason { drafts_in, ..*reason };
        if !untold.is_empty() {
            // All other errors are reported first. A later error would reveal that the quoted lines
            // of an unreadable file match.
            verified(fit(&others, reason))?;
            let mut untold = untold.iter();
            verified(untold.try_for_each(|section| section.verify(&section.from.read()?)))?;
        }
        let mut plan = Self { changes: Changes::new(), done: Vec::new() };
        let mut shown = 0;
        for fitted in verified(fit(&all, reason))? {
            let Fitted { mut done, file, detail } = fitted;
            // The number of threads decides how many diffs are made in full, but not how many are
            // shown.
            match detail {
                Detail::Counted if shown < MAX_PREVIEW => done.diff = file.diff(Detail::Shown),
                Detail::Shown if shown >= MAX_PREVIEW && sections.len() > FEW => {
                    done.diff.diff.unified.clear();
                }
                _ => {}
            }
            shown += done.diff.diff.unified.len();
            plan.changes = file.add_to(plan.changes)?;
            plan.done.push(done);
        }
        Ok(plan)
    }
}

/// Options for planning.
pub(super) struct Reason<'r> {
    /// Whether the plan is only for the approval preview.
    pub(super) is_shown: bool,
    /// Returns whether the call was cancelled or ran out of time.
    pub(super) stopped: &'r (dyn Fn() -> bool + Sync),
    /// The workspace in which new texts of many files are staged as soon as they are computed;
    /// `None` when the plan is not carried out.
    pub(super) drafts_in: Option<&'r Workspace>,
}

/// A section of a patch with its resolved paths.
pub(super) struct Section<'p> {
    pub(super) source: &'p str,
    pub(super) from: Named<'p>,
    pub(super) to: Option<Named<'p>>,
}

impl Named<'_> {
    /// Reads the file to delete. A dangling link is deleted itself, as long as no preview showed a
    /// file there.
    fn read_to_delete(&self, reason: &Reason<'_>) -> Result<Target, ToolError> {
        match self.path.shown().is_none() && is_link(&self.place) {
            true => self.link(),
            false => self.read_to_lose(reason),
        }
    }

    /// Reads a file that is replaced or deleted as a whole: the version that the approval preview
    /// showed, and no other.
    fn read_to_lose(&self, reason: &Reason<'_>) -> Result<Target, ToolError> {
        match reason.is_shown {
            true => self.show(),
            false => self.shown(),
        }
    }
}

/// A section that applies to its file.
struct Fitted {
    done: Done,
    file: Next,
    detail: Detail,
}

/// The file before and after the change.
struct Next {
    from: Target,
    /// The file that is overwritten at the new path.
    to: Option<Target>,
    /// The new text; `None` when the file is removed.
    text: Option<Text>,
    /// The changed lines, when the patch names them.
    changes: Option<Vec<Change>>,
}

/// The new text, in memory or staged.
enum Text {
    Made(String),
    /// Staged beside the file. A failure is reported only after all sections have been applied.
    Written(Result<Draft, ToolError>),
}

/// Applies all sections to their files, on several threads when there are many. Returns the results
/// in the order of the sections, up to the first failure.
fn fit(sections: &[&Section<'_>], reason: &Reason<'_>) -> Result<Vec<Fitted>, ToolError> {
    let threads = match sections.len() {
        0..=FEW => 1,
        _ => *THREADS,
    };
    let room = if sections.len() <= FEW { usize::MAX } else { MAX_PREVIEW / threads };
    let drafts_in = reason.drafts_in.filter(|_| sections.len() > FEW);
    // Files are distributed in turns, so that each thread gets an equal part of the first ones,
    // whose diffs are shown. Each thread opens its own handles, because the kernel serializes use
    // of one handle.
    let fit = |at: usize| {
        let mine = sections.iter().copied().skip(at).step_by(threads);
        let drafts = match drafts_in.map(Drafts::begin).transpose() {
            Ok(drafts) => drafts,
            Err(error) => return vec![Err(error)],
        };
        fit_some(mine, reason, drafts.as_ref(), &Effort::share(threads), room)
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
fn fit_some<'s>(
    sections: impl Iterator<Item = &'s Section<'s>>,
    reason: &Reason<'_>,
    drafts: Option<&Drafts>,
    effort: &Effort,
    mut room: usize,
) -> Vec<Result<Fitted, ToolError>> {
    let mut all = Vec::new();
    for section in sections {
        let detail = if room > 0 { Detail::Shown } else { Detail::Counted };
        all.push(match (reason.stopped)() {
            true => Err(ToolError::aborted("the call was cancelled or timed out")),
            false => {
                section.fit(reason, drafts, effort, detail).map(|fitted| fitted.written(drafts))
            }
        });
        let Some(Ok(fitted)) = all.last() else { break };
        room = room.saturating_sub(fitted.done.diff.diff.unified.len());
    }
    all
}

impl Section<'_> {
    fn fit(
        &self,
        reason: &Reason<'_>,
        drafts: Option<&Drafts>,
        effort: &Effort,
        detail: Detail,
    ) -> Result<Fitted, ToolError> {
        // Syntax errors were reported before, for all sections on one thread.
        let hunk = hunk(self.source).map_err(|error| ToolError::failed(&error).source(error))?;
        let whole = |from: Target, text: Option<String>| {
            let diff = from.diff(text.as_deref(), detail);
            let text = text.map(Text::Made);
            (Next { from, to: None, text, changes: None }, Pass::Exact, diff)
        };
        let mut was = None;
        let (path, operation, (file, pass, diff)) = match hunk {
            Hunk::Add { path, content } => {
                let from = self.from.read_to_lose(reason)?;
                // An existing file is updated, even if the patch says `Add File`.
                let operation = if from.exists() { Operation::Update } else { Operation::Add };
                let content = from.fitting(content);
                was = from.was();
                (path, operation, whole(from, Some(content)))
            }
            Hunk::Delete { path } => {
                let from = self.from.read_to_delete(reason)?;
                self.verify(&from)?;
                (path, Operation::Delete, whole(from, None))
            }
            Hunk::Update { path, move_to, chunks } => {
                let (from, (new, diff)) =
                    self.update(path, &chunks, (reason, drafts), effort, detail)?;
                let to = self.to.as_ref().map(|to| to.read_to_lose(reason)).transpose()?;
                let diff = moved(diff, to.as_ref(), detail);
                let text = Some(Text::Made(new.text));
                let file = Next { from, to, text, changes: Some(new.changes) };
                match move_to {
                    None => (path, Operation::Update, (file, new.pass, diff)),
                    Some(to) => (to, Operation::Move, (file, new.pass, diff)),
                }
            }
        };
        let done = Done { path: path.to_owned(), operation, diff, pass, was };
        Ok(Fitted { done, file, detail })
    }

    /// Reads the file and applies the chunks. The quoted lines may have moved since the approval
    /// preview.
    fn update(
        &self,
        path: &str,
        chunks: &[Chunk<'_>],
        (reason, drafts): (&Reason<'_>, Option<&Drafts>),
        effort: &Effort,
        detail: Detail,
    ) -> Result<(Target, (Updated, FileDiff)), ToolError> {
        let make = |from: &Target| {
            self.verify(from)?;
            let old = from.text()?;
            match update(old, chunks, path, effort) {
                // An unreadable file only reveals success through an actual change.
                Ok(new) if !from.is_told() && new.text == old => Err(unfit_untold()),
                Ok(new) if !is_too_long(&new.text) => {
                    // The diff is made while the text is known to be UTF-8.
                    let diff = from.diff_along(old, &new.text, &new.changes, detail);
                    Ok((new, diff))
                }
                Ok(_) if !from.is_told() => Err(unfit_untold()),
                Ok(_) => Err(ToolError::failed(format_args!(
                    "`{}` would have more than 64 MiB or two million lines",
                    from.path()
                ))
                .hint("use a command")),
                Err(error) => Err(misfit(from, error)),
            }
        };
        if reason.is_shown {
            let from = self.from.show()?;
            let new = make(&from)?;
            return Ok((from, new));
        }
        self.from.read_to_edit(drafts, make, |(new, _)| &new.text)
    }

    /// Fails for a missing file, and for a move of a file that may not be read.
    fn verify(&self, from: &Target) -> Result<(), ToolError> {
        if !from.exists() {
            // The file may have been created since the approval preview.
            let now = self.from.read()?;
            return Err(match now.exists() {
                true => now.is_another(),
                false => self.missing(from),
            });
        }
        if self.to.is_some() && !from.is_told() {
            // Its content could become readable under the new name.
            let message = format_args!("`{}` may not be read, so it keeps its name", from.path());
            return Err(ToolError::denied(message).hint("change it where it is, without `Move to`"));
        }
        Ok(())
    }

    /// Returns the error for a missing file.
    fn missing(&self, from: &Target) -> ToolError {
        let path = from.path();
        match hunk(self.source) {
            Ok(Hunk::Update { .. }) => ToolError::failed(format_args!(
                "Failed to read file to update: there is no `{path}`"
            )),
            _ => ToolError::failed(format_args!("there is no `{path}`")),
        }
    }

    /// Whether the result depends on the content of a file that may not be read.
    fn quotes_what_is_untold(&self) -> bool {
        !self.from.is_told && matches!(hunk(self.source), Ok(Hunk::Update { .. }))
    }
}

impl Fitted {
    /// Stages the new text beside its file. New and moved files wait until all sections have been
    /// applied.
    fn written(mut self, drafts: Option<&Drafts>) -> Self {
        let is_update = self.done.operation == Operation::Update && self.file.from.exists();
        if let (Some(drafts), true) = (drafts, is_update) {
            let Self { file: Next { from, text, .. }, .. } = &mut self;
            *text = text.take().map(|text| match text {
                Text::Made(text) => Text::Written(from.draft(drafts, text)),
                written => written,
            });
        }
        self
    }
}

impl Next {
    fn diff(&self, detail: Detail) -> FileDiff {
        let new = self.text.as_ref().and_then(Text::get);
        let diff = match (&self.changes, new, self.from.text()) {
            (Some(changes), Some(new), Ok(old)) => self.from.diff_along(old, new, changes, detail),
            (_, new, _) => self.from.diff(new, detail),
        };
        moved(diff, self.to.as_ref(), detail)
    }

    fn add_to(self, changes: Changes) -> Result<Changes, ToolError> {
        Ok(match (self.to, self.text) {
            (_, Some(Text::Written(draft))) => changes.put(draft?),
            (Some(to), Some(Text::Made(text))) => self.from.change_place(changes, to, text),
            (_, Some(Text::Made(text))) => self.from.change(changes, Some(text)),
            (_, None) => self.from.change(changes, None),
        })
    }
}

impl Text {
    fn get(&self) -> Option<&str> {
        match self {
            Self::Made(text) => Some(text),
            Self::Written(draft) => std::str::from_utf8(draft.as_ref().ok()?.content()).ok(),
        }
    }
}

/// Returns the diff of a moved file, including the file that is overwritten at `to`.
fn moved(diff: FileDiff, to: Option<&Target>, detail: Detail) -> FileDiff {
    match to {
        Some(to) => diff.moved(&to.spelling(), detail).and(to.diff(None, detail)),
        None => diff,
    }
}

/// Adds the prefix "apply_patch verification failed", which models know, to an error of the patch
/// or its files. No file has changed then.
pub(super) fn verified<T>(result: Result<T, ToolError>) -> Result<T, ToolError> {
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
fn misfit(target: &Target, error: ApplyError) -> ToolError {
    if !target.is_told() {
        return unfit_untold();
    }
    let quoted = match &error {
        ApplyError::Context { context, .. } => context,
        ApplyError::Lines { lines, .. } => lines,
        ApplyError::Effort { .. } => return ToolError::failed(&error).source(error),
    };
    // A byte order mark is not part of the first line.
    let near = target.text().ok().and_then(|text| nearest(split_bom(text).1, split_bom(quoted).1));
    let told = ToolError::failed(&error);
    match near {
        _ if is_range(quoted) => told.hint(
            "a hunk has no line numbers: begin it with `@@`, or with `@@ ` and a line above it",
        ),
        Some(near) if near.is_the_same() => told.hint(format_args!(
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
fn is_range(context: &str) -> bool {
    let mut words = context.split_whitespace();
    let mut is_count = |sign| {
        let count = words.next().and_then(|word| word.strip_prefix(sign)).unwrap_or_default();
        count.starts_with(|c: char| c.is_ascii_digit())
    };
    is_count('-') && is_count('+') && words.next() == Some("@@")
}

impl Operation {
    pub(super) fn letter(self) -> char {
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
