//! The one place where a result's text is cut.

use super::frame::Frame;
use crate::call::Truncated;
use crate::content::Output;
use crate::error::ToolError;
use crate::event::EventKind;
use crate::tool::Truncate;
use crate::truncate::{Fitted, keep};

/// The longest message of a failed call, in bytes; a hint may be as long again.
const MAX_ERROR: usize = 4096;

/// Cuts the text of a result that is too long, and says what is missing.
#[inline]
pub(super) fn fit(frame: &Frame<'_>, result: &mut Result<Output, ToolError>) -> Option<Truncated> {
    let output = match result {
        Ok(output) => output,
        Err(error) => {
            error.shorten(MAX_ERROR);
            return None;
        }
    };
    let max_output = frame.call.max_output;
    let budget = match max_output.or(frame.definition.max_output) {
        Some(bytes) => frame.core.budget.with_bytes(bytes),
        None => frame.core.budget,
    };
    // A limit that the caller sets binds tools too that keep themselves short.
    let direction = match (frame.definition.truncate, max_output) {
        (Some(Truncate::None), Some(_)) | (None, _) => Truncate::Head,
        (Some(direction), _) => direction,
    };
    let fitted = budget.fit(output.as_text(), direction)?;
    let (text, truncated) = cut(frame, output.as_text(), &fitted);
    output.replace_text(text);
    frame.event(|| EventKind::Truncated(truncated.clone()));
    Some(truncated)
}

#[cold]
fn cut(frame: &Frame<'_>, whole: &str, fitted: &Fitted<'_>) -> (String, Truncated) {
    let kept = frame
        .core
        .output_dir
        .as_deref()
        .map(|folder| keep(folder, frame.session.id(), &frame.id.to_string(), whole));
    let lost = matches!(kept, Some(Err(_)));
    let truncated = Truncated {
        original_lines: fitted.original_lines,
        original_bytes: whole.len(),
        omitted_lines: fitted.omitted_lines,
        omitted_bytes: fitted.omitted_bytes,
        full_output_path: kept.and_then(Result::ok),
    };
    (worded(fitted, &truncated, lost), truncated)
}

fn worded(fitted: &Fitted<'_>, truncated: &Truncated, lost: bool) -> String {
    let Truncated { original_lines, original_bytes, omitted_lines, omitted_bytes, .. } = truncated;
    let mut notice = format!(
        "[{omitted_lines} of {original_lines} lines and {omitted_bytes} of {original_bytes} bytes \
         left out"
    );
    if let Some(path) = &truncated.full_output_path {
        notice.push_str("; the whole output is in ");
        notice.push_str(&path.display().to_string());
    }
    if lost {
        notice.push_str("; they could not be kept");
    }
    notice.push(']');
    let mut text = String::with_capacity(fitted.head.len() + fitted.tail.len() + notice.len() + 4);
    text.push_str(fitted.head);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&notice);
    if !fitted.tail.is_empty() {
        text.push('\n');
        text.push_str(fitted.tail);
    }
    text
}
