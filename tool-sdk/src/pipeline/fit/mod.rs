//! The one place where a result's text is cut.
//!
//! The cut is for the model. A structured value stays whole for programs, whatever became
//! of its text. The file of what was cut is written here and now: it is no larger than
//! the text that the tool has just made, and the notice must be able to name it.

mod notice;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use super::frame::Frame;
use crate::call::Truncated;
use crate::content::{Dropped, Output};
use crate::error::ToolError;
use crate::event::EventKind;
use crate::tool::Truncate;
use crate::truncate::{Budget, Fitted, RETENTION, is_due, keep, sweep};

/// The most bytes of what a model reads of a failed call, its hint included.
const MAX_ERROR: usize = 4096;

/// Cuts the text of a result that is too long, and says what is missing.
#[inline]
pub(super) fn fit(frame: &Frame<'_>, result: &mut Result<Output, ToolError>) -> Option<Truncated> {
    match result {
        Ok(output) => {
            let bytes = frame.call.max_output.or(frame.definition.max_output);
            let budget = frame.core.budget;
            let budget = bytes.map_or(budget, |bytes| budget.with_bytes(bytes));
            let is_short = output.is_bare() && budget.surely_admits(output.as_text());
            if is_short { None } else { fitted(frame, output, budget) }
        }
        Err(error) => {
            error.shorten(MAX_ERROR);
            None
        }
    }
}

/// Apart, because most results are short.
#[inline(never)]
fn fitted(frame: &Frame<'_>, output: &mut Output, budget: Budget) -> Option<Truncated> {
    let budget = match output.own_limit() {
        Some(bytes) => budget.with_bytes(bytes.min(budget.max_bytes())),
        None => budget,
    };
    let (budget, direction) = match (frame.definition.truncate, frame.call.max_output) {
        // Tools that keep themselves short are bound by what somebody set, not by the default.
        (Some(Truncate::None), None) => (budget.lowered(), Truncate::Head),
        (Some(Truncate::None), Some(_)) | (None, _) => (budget, Truncate::Head),
        (Some(direction), _) => (budget, direction),
    };
    let (text, (heading, body)) = (output.as_text(), output.parts());
    let dropped = output.dropped_counts();
    let fitted = budget.fit(body, direction).or_else(|| dropped.map(|_| Fitted::whole(body)))?;
    let fitted = fitted.below(heading.len(), text);
    let (text, truncated) = cut(frame, text, body.len(), &fitted, dropped.unwrap_or_default());
    output.replace_text(text);
    frame.event(|| EventKind::Truncated(truncated.clone().into()));
    Some(truncated)
}

#[cold]
fn cut(
    frame: &Frame<'_>,
    whole: &str,
    counted: usize,
    fitted: &Fitted<'_>,
    dropped: Dropped,
) -> (String, Truncated) {
    let kept = if fitted.omitted_bytes > 0 { kept(frame, whole) } else { None };
    let lost = matches!(kept, Some(Err(_)));
    let truncated = Truncated {
        original_lines: fitted.original_lines.saturating_add(dropped.lines),
        original_bytes: counted.saturating_add(dropped.bytes),
        omitted_lines: fitted.omitted_lines.saturating_add(dropped.lines),
        omitted_bytes: fitted.omitted_bytes.saturating_add(dropped.bytes),
        dropped_lines: dropped.lines,
        dropped_bytes: dropped.bytes,
        full_output_path: kept.and_then(Result::ok),
    };
    let notice = notice::of(&truncated, lost, &frame.core.toolset.view_for(frame.session));
    (joined(fitted, &notice), truncated)
}

/// Keeps `whole` in a file of the session; nothing where the host keeps no outputs.
pub(super) fn kept(frame: &Frame<'_>, whole: &str) -> Option<io::Result<PathBuf>> {
    let folder = frame.core.output_dir.as_deref()?;
    sweep_now_and_then(folder);
    Some(keep(folder, frame.session.id(), &frame.id.to_string(), whole))
}

/// Removes outputs that nobody came back for: beside the call, and at most once an hour.
fn sweep_now_and_then(folder: &Path) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current()
        && is_due(folder)
    {
        let folder = folder.to_owned();
        drop(runtime.spawn_blocking(move || sweep(&folder, RETENTION)));
    }
}

/// The notice stands where the text was cut, on a line of its own.
fn joined(fitted: &Fitted<'_>, notice: &str) -> String {
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
