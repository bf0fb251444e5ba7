//! What a patch makes of the files that it names.
//!
//! **Invariant:** no file changes here; where there are many, their new texts are beside them.

use std::panic;
use std::sync::LazyLock;
use std::thread::{self, available_parallelism};

use tool_sdk::{Changes, Draft, Drafts, ErrorKind, ToolError, Workspace};

use super::target::{Named, Target, is_link, is_too_long, unfit_untold};
use crate::diff::{Change, Detail, FileDiff};
use crate::edit::nearest;
use crate::patch::{ApplyError, Chunk, Effort, Hunk, Pass, Updated, hunk, update};
use crate::text::lines::split_bom;

/// So few files that starting a thread takes longer.
const FEW: usize = 16;

/// How many threads there are at most.
const MOST: usize = 4;

/// How many threads there are for many files; to find that out, the system reads files.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(1, usize::from).min(MOST));

/// How much of all diffs together is shown before a call runs, in bytes.
pub(super) const MAX_PREVIEW: usize = 256 * 1024;

/// A patch that was found to fit.
pub(super) struct Plan {
    pub(super) changes: Changes,
    pub(super) done: Vec<Done>,
}

/// What becomes of one file.
pub(super) struct Done {
    /// As the patch has it.
    pub(super) path: String,
    pub(super) operation: Operation,
    pub(super) diff: FileDiff,
    pub(super) pass: Pass,
    /// What the file was that was replaced as a whole, where that was no text in UTF-8.
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
    /// Reads every file and makes its new text.
    pub(super) fn new(sections: &[Section<'_>], reason: &Reason<'_>) -> Result<Self, ToolError> {
        let all: Vec<&Section<'_>> = sections.iter().collect();
        let (untold, others): (Vec<_>, Vec<_>) =
            all.iter().partition(|section| section.quotes_what_is_untold());
        // What is beside a file would tell that it fits.
        let drafts_in = reason.drafts_in.filter(|_| untold.is_empty());
        let reason = &Reason { drafts_in, ..*reason };
        if !untold.is_empty() {
            // First whatever else may be wrong, since by then it would tell that what is quoted
            // is there.
            verified(fit(&others, reason))?;
            let mut untold = untold.iter();
            verified(untold.try_for_each(|section| section.verify(&section.from.read()?)))?;
        }
        let mut plan = Self { changes: Changes::new(), done: Vec::new() };
        let mut shown = 0;
        for fitted in verified(fit(&all, reason))? {
            let Fitted { mut done, file, detail } = fitted;
            // How many threads there were decides how much was made, not what is shown.
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

/// What a plan is made for.
pub(super) struct Reason<'r> {
    /// Whether somebody is shown it, who says then whether it is carried out.
    pub(super) is_shown: bool,
    /// Says that nobody waits for it any more.
    pub(super) stopped: &'r (dyn Fn() -> bool + Sync),
    /// Where new texts of many files are written beside them as soon as they are made; nowhere
    /// when nothing is to be carried out.
    pub(super) drafts_in: Option<&'r Workspace>,
}

/// A section of a patch, and the places that it names.
pub(super) struct Section<'p> {
    pub(super) source: &'p str,
    pub(super) from: Named<'p>,
    pub(super) to: Option<Named<'p>>,
}

impl Named<'_> {
    /// The same, or a link through which nothing is reached: nothing is lost with it that nobody was shown.
    fn read_to_delete(&self, reason: &Reason<'_>) -> Result<Target, ToolError> {
        match self.path.shown().is_none() && is_link(&self.place) {
            true => self.link(),
            false => self.read_to_lose(reason),
        }
    }

    /// The file that goes as a whole: the one that somebody was shown, and no other.
    fn read_to_lose(&self, reason: &Reason<'_>) -> Result<Target, ToolError> {
        match reason.is_shown {
            true => self.show(),
            false => self.shown(),
        }
    }
}

/// A section that was found to fit.
struct Fitted {
    done: Done,
    file: Next,
    detail: Detail,
}

/// What a file is, and what it is to be.
struct Next {
    from: Target,
    /// What stands where the file is moved to.
    to: Option<Target>,
    /// What the file is to say; `None` when there is to be no file.
    text: Option<Text>,
    /// Where that differs, when the patch says so.
    changes: Option<Vec<Change>>,
}

/// A new text, and where it is.
enum Text {
    Made(String),
    /// Beside the file already, unless that failed: first all of a patch must be found to fit.
    Written(Result<Draft, ToolError>),
}

/// Fits all sections to their files, on several threads when there are many; in the order of
/// the sections, and up to the first that does not fit.
fn fit(sections: &[&Section<'_>], reason: &Reason<'_>) -> Result<Vec<Fitted>, ToolError> {
    let threads = match sections.len() {
        0..=FEW => 1,
        _ => *THREADS,
    };
    let room = if sections.len() <= FEW { usize::MAX } else { MAX_PREVIEW / threads };
    let drafts_in = reason.drafts_in.filter(|_| sections.len() > FEW);
    // By turns, so that each thread has as much of what is shown, which comes first; and each
    // with handles of its own, since the system lets one thread at a time use the same one.
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
    // This one only waits: a new thread mostly begins where the one that started it goes on, and
    // then not before the system has noticed.
    let mut parts: Vec<_> = thread::scope(|scope| {
        let start =
            |at| thread::Builder::new().spawn_scoped(scope, move || fit(at)).map_err(|_| at);
        let started: Vec<_> = (0..threads).map(start).collect();
        let done = started.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|it| panic::resume_unwind(it)),
            // Where the system has no more threads, this one does it all.
            Err(at) => fit(at),
        });
        done.map(Vec::into_iter).collect()
    });
    (0..sections.len()).map_while(|at| parts[at % threads].next()).collect()
}

/// Fits what one of several threads does, until something does not fit; `room` is how much of
/// the differences is wanted in full.
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
            true => Err(ToolError::aborted("it took too long, or nobody waits for it any more")),
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
        // Mistakes were looked for before, in all sections on one thread.
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
                // A file that is there already is changed, whatever the patch calls it.
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

    /// The file, what becomes of it and how that differs; what is quoted may have moved since it
    /// was shown.
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
                // That it fits is told by the change alone.
                Ok(new) if !from.is_told() && new.text == old => Err(unfit_untold()),
                Ok(new) if !is_too_long(&new.text) => {
                    // While the text is at hand, and known to be one.
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

    /// Refuses to change or to delete what is not there, and to move what may not be read.
    fn verify(&self, from: &Target) -> Result<(), ToolError> {
        if !from.exists() {
            // It may have been made since somebody was shown that there is none.
            let now = self.from.read()?;
            return Err(match now.exists() {
                true => now.is_another(),
                false => self.missing(from),
            });
        }
        if self.to.is_some() && !from.is_told() {
            // Under its new name it might be read.
            let message = format_args!("`{}` may not be read, so it keeps its name", from.path());
            return Err(ToolError::denied(message).hint("change it where it is, without `Move to`"));
        }
        Ok(())
    }

    /// The failure of what needs a file that is not there.
    fn missing(&self, from: &Target) -> ToolError {
        let path = from.path();
        match hunk(self.source) {
            Ok(Hunk::Update { .. }) => ToolError::failed(format_args!(
                "Failed to read file to update: there is no `{path}`"
            )),
            _ => ToolError::failed(format_args!("there is no `{path}`")),
        }
    }

    /// Whether it depends on what a file says that may not be read.
    fn quotes_what_is_untold(&self) -> bool {
        !self.from.is_told && matches!(hunk(self.source), Ok(Hunk::Update { .. }))
    }
}

impl Fitted {
    /// The same with the new text beside its file. What makes or moves a file waits until all
    /// of the patch is found to fit.
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

/// The difference of a file that gets the place of `to`, with what is lost there.
fn moved(diff: FileDiff, to: Option<&Target>, detail: Detail) -> FileDiff {
    match to {
        Some(to) => diff.moved(&to.spelling(), detail).and(to.diff(None, detail)),
        None => diff,
    }
}

/// What is wrong with a patch, or with the files that it names, in the words that models know;
/// nothing has changed then.
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

/// The failure of a hunk that has no place, with the place that is most like it.
fn misfit(target: &Target, error: ApplyError) -> ToolError {
    if !target.is_told() {
        return unfit_untold();
    }
    let quoted = match &error {
        ApplyError::Context { context, .. } => context,
        ApplyError::Lines { lines, .. } => lines,
        ApplyError::Effort { .. } => return ToolError::failed(&error).source(error),
    };
    // A byte order mark is no part of the first line.
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

/// Whether a hunk begins as in other formats, such as `@@ -1,3 +1,4 @@`.
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
