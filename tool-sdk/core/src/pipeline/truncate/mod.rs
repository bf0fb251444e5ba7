//! Truncates the text of a result to what a model can afford to read.
//!
//! The whole text is stored in a file, which the notice names. A structured value stays whole
//! for programs.

mod notice;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::inner::PipelineInner;
use super::invocation::Invocation;
use super::{session_files, visibility};
use crate::call::{CallId, Truncation};
use crate::content::{DroppedOutput, Output};
use crate::context::{Context, Session, Visibility};
use crate::error::ToolError;
use crate::event::EventKind;
use crate::tool::{Definition, Truncate};
use crate::truncate::{Budget, FittedText, is_sweep_due, save_output, sweep_outputs};

/// The most bytes of a failed call that a model reads, its hint included.
const MAX_ERROR_BYTES: usize = 4096;

/// Truncates the text of a result that is too long, and adds a notice of what is missing.
pub(super) fn truncate_result(
    invocation: &Invocation<'_>,
    result: &mut Result<Output, ToolError>,
) -> Option<Truncation> {
    match result {
        Ok(output) => {
            let bytes = invocation.call.max_output.or(invocation.definition().max_output);
            let budget = invocation.inner.budget;
            let budget = bytes.map_or(budget, |bytes| budget.with_bytes(bytes));
            let is_short = output.is_text_only() && budget.surely_admits(output.as_text());
            if is_short { None } else { truncate_output(invocation, output, budget) }
        }
        Err(error) if error.is_within(MAX_ERROR_BYTES) => None,
        Err(error) => shorten_error(invocation, error),
    }
}

/// Cuts an error in its middle: what went wrong may be at either end.
#[cold]
fn shorten_error(invocation: &Invocation<'_>, error: &mut ToolError) -> Option<Truncation> {
    let whole = error.to_string();
    let room = error.truncate_hint(MAX_ERROR_BYTES);
    let message = error.message();
    if message.len() <= room {
        return None;
    }
    let (path, is_lost) = store_whole(invocation, &whole);
    let record = |fitted: &FittedText<'_>| {
        let truncated = summarize_truncation(fitted, message, &LostText::default(), path.clone());
        let notice = truncation_notice(invocation, &truncated, is_lost);
        (truncated, notice)
    };
    // The longest notice is that of a text of which nothing is left.
    let (_, longest) = record(&FittedText::keep_none(message));
    let budget = Budget::new(usize::MAX, room.saturating_sub(longest.len() + 2));
    let fitted = budget.fit(message, Truncate::Middle)?;
    let (truncated, notice) = record(&fitted);
    error.replace_message(join_with_notice(&fitted, &notice));
    // When the notice alone is too long.
    error.truncate_to(MAX_ERROR_BYTES);
    invocation.emit(|| EventKind::Truncated(truncated.clone().into()));
    Some(truncated)
}

/// A function of its own, because most results are short.
#[inline(never)]
fn truncate_output(
    invocation: &Invocation<'_>,
    output: &mut Output,
    budget: Budget,
) -> Option<Truncation> {
    let budget = match output.requested_limit() {
        Some(bytes) => budget.with_bytes(bytes.min(budget.max_bytes())),
        None => budget,
    };
    let (budget, direction) = match (invocation.definition().truncate, invocation.call.max_output) {
        // Tools that limit their own output are truncated by an explicit limit, not by the default.
        (Some(Truncate::None), None) => (budget.only_lowered(), Truncate::Head),
        (Some(Truncate::None), Some(_)) | (None, _) => (budget, Truncate::Head),
        (Some(direction), _) => (budget, direction),
    };
    let (heading, body, footing) = output.sections();
    let dropped = output.dropped_counts();
    let is_dropped = dropped.is_some();
    let lost = LostText {
        source: output.original_byte_count(),
        ..LostText::from_output(body, dropped.unwrap_or_default())
    };
    let fitted = budget.fit(body, direction);
    let is_cut = fitted.is_some();
    // The notice replaces the tool's mark, when nothing else is missing.
    let fitted = match (fitted, &lost.mark) {
        (Some(fitted), Some(mark)) => fitted.with_whole_marker(body, mark),
        (Some(fitted), None) => fitted,
        (None, _) if !is_dropped => return None,
        (None, Some(mark)) => FittedText::without_range(body, mark),
        (None, None) => FittedText::keep_all(body),
    };
    let (path, is_lost) =
        if is_cut { store_whole(invocation, output.as_text()) } else { (None, false) };
    let truncated = summarize_truncation(&fitted, body, &lost, path);
    let notice = truncation_notice(invocation, &truncated, is_lost);
    let text = join_with_notice(&fitted.with_heading(heading.len(), output.as_text()), &notice);
    let end = if footing.is_empty() || footing.starts_with('\n') || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let text = [&*text, end, footing].concat();
    output.replace_text(text);
    invocation.emit(|| EventKind::Truncated(truncated.clone().into()));
    Some(truncated)
}

/// The parts of a text that the tool lost before.
#[derive(Default)]
struct LostText {
    lines: usize,
    bytes: usize,
    /// The place where the text says so.
    mark: Option<Range<usize>>,
    /// The size in bytes of the source, when the text is not the source itself.
    source: Option<usize>,
}

impl LostText {
    fn from_output(body: &str, dropped: DroppedOutput) -> Self {
        let DroppedOutput { lines, bytes, marker: mark } = dropped;
        let start = if mark.is_empty() { None } else { body.find(&mark) };
        let mark = start.map(|start| start..start + mark.len());
        Self { lines, bytes, mark, source: None }
    }

    /// Returns how many bytes of the source a part of the text stands for.
    fn source_len(&self, text: &str) -> usize {
        let no_text = match self.source {
            Some(_) => text.matches(char::REPLACEMENT_CHARACTER).map(str::len).sum(),
            None => 0,
        };
        text.len() - no_text
    }
}

/// Describes what is left out of a text.
fn summarize_truncation(
    fitted: &FittedText<'_>,
    body: &str,
    lost: &LostText,
    full_output_path: Option<PathBuf>,
) -> Truncation {
    let mark = lost.mark.clone().unwrap_or_default();
    let is_kept = mark.end <= fitted.head.len() || mark.start >= body.len() - fitted.tail.len();
    let mark_lines = body[mark.clone()].matches('\n').count();
    let (cut_lines, kept_mark) = if is_kept { (0, mark.len()) } else { (mark_lines, 0) };
    let text = lost.source_len(body) - mark.len();
    let shown = lost.source_len(fitted.head) + lost.source_len(fitted.tail) - kept_mark;
    let original_bytes = lost.source.unwrap_or(text.saturating_add(lost.bytes));
    let lines = |lines: usize, mark: usize| lines.saturating_add(lost.lines).saturating_sub(mark);
    Truncation {
        original_lines: lines(fitted.original_lines, mark_lines),
        original_bytes,
        omitted_lines: lines(fitted.omitted_lines, cut_lines),
        omitted_bytes: original_bytes.saturating_sub(shown),
        dropped_lines: lost.lines,
        dropped_bytes: lost.bytes,
        unprintable_bytes: original_bytes.saturating_sub(text.saturating_add(lost.bytes)),
        full_output_path,
    }
}

/// Returns the notice for the model; it names the tools that can open the file, if there are any.
fn truncation_notice(invocation: &Invocation<'_>, truncated: &Truncation, is_lost: bool) -> String {
    let view = invocation.inner.toolset.view_for(invocation.session);
    let path = truncated.full_output_path.as_deref();
    let is_hidden = path.is_some_and(|path| session_files::is_refused(invocation.session, path));
    let may_open = |tool: &Definition| path.is_some_and(|path| may_open(invocation, tool, path));
    notice::write_notice(truncated, is_lost, (!is_hidden).then_some(&*view), &may_open)
}

/// Whether the rules let a tool show the file at `path`.
fn may_open(invocation: &Invocation<'_>, tool: &Definition, path: &Path) -> bool {
    let cx =
        Context::new(invocation.session.clone(), tool.name.clone(), invocation.origin.id.clone());
    let sight = visibility::visibility_filter(invocation.inner, &cx, tool.permission());
    sight.named_file_visibility(&path.to_string_lossy(), path) != Visibility::Hidden
}

/// Returns where `whole` is stored, and whether storing it failed.
fn store_whole(invocation: &Invocation<'_>, whole: &str) -> (Option<PathBuf>, bool) {
    match store_output(invocation.inner, invocation.session, &invocation.origin.id, whole) {
        Some(Ok(path)) => (Some(path), false),
        Some(Err(_)) => (None, true),
        None => (None, false),
    }
}

/// Stores `whole` in a file of the session; `None` when the host keeps no outputs.
pub(super) fn store_output(
    inner: &PipelineInner,
    session: &Session,
    id: &CallId,
    whole: &str,
) -> Option<io::Result<PathBuf>> {
    let folder = inner.output_dir.as_deref()?;
    sweep_now_and_then(folder, inner.outputs_max_age);
    Some(save_output(folder, session.id(), &id.to_string(), whole))
}

/// Removes old outputs: in the background, and at most once an hour.
fn sweep_now_and_then(folder: &Path, max_age: Duration) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current()
        && is_sweep_due(folder)
    {
        let folder = folder.to_owned();
        drop(runtime.spawn_blocking(move || sweep_outputs(&folder, max_age)));
    }
}

/// Puts the notice where the text was cut, on a line of its own.
fn join_with_notice(fitted: &FittedText<'_>, notice: &str) -> String {
    let mut text = String::with_capacity(fitted.head.len() + fitted.tail.len() + notice.len() + 2);
    text.push_str(fitted.head);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(notice);
    if !fitted.tail.is_empty() {
        text.push('\n');
        text.push_str(fitted.tail);
    }
    text
}
