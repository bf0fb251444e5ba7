//! Shows a form to the user and reports how it ended.

use serde_json::{Map, Value, json};
use tool_sdk::{Context, ElicitationOutcome, ErrorKind, InquiryKind, Output, ToolError};

use crate::form_outcome::FormOutcome;

/// What the model does without an answer.
const DECIDE_YOURSELF: &str = "decide yourself, and say in your answer what you assumed";

/// How a question ended.
pub(super) enum QuestionOutcome {
    /// The user filled in the form.
    Answered(Map<String, Value>),
    /// The user gave no answer, for this reason; with the output for the model.
    Unanswered(FormOutcome, Output),
}

/// Asks the user to fill in a form.
///
/// Fails at once with kind `unavailable` when no user can be asked.
pub(super) async fn ask_user(
    cx: &Context,
    message: String,
    schema: Value,
) -> Result<QuestionOutcome, ToolError> {
    if !cx.session().can_inquire(InquiryKind::Form) {
        return Err(
            ToolError::unavailable("no user can be asked in this session").hint(DECIDE_YOURSELF)
        );
    }
    cx.emit("question.asked", json!({ "message": message, "schema": schema }));
    let (outcome, what) = match cx.elicit(message, schema).await {
        Ok(ElicitationOutcome::Accepted(content)) => {
            cx.emit("question.answered", json!({ "outcome": "answered", "content": content }));
            return Ok(QuestionOutcome::Answered(content));
        }
        Ok(ElicitationOutcome::Declined) => {
            (FormOutcome::Declined, "The user does not want to answer.")
        }
        Ok(ElicitationOutcome::Cancelled) => {
            (FormOutcome::Cancelled, "The user closed the question without an answer.")
        }
        Err(error) if error.kind() == ErrorKind::Timeout => {
            (FormOutcome::TimedOut, "The user did not answer in time.")
        }
        Err(error) => return Err(error.hint(DECIDE_YOURSELF)),
    };
    cx.emit("question.answered", json!({ "outcome": outcome }));
    let text = format!("{what} Do not ask again: {DECIDE_YOURSELF}.");
    Ok(QuestionOutcome::Unanswered(outcome, Output::text(text).title(outcome.as_str())))
}

/// Returns the text of a question with its context.
pub(super) fn question_text(question: &str, context: Option<&str>) -> String {
    match context {
        Some(context) if !context.trim().is_empty() => format!("{question}\n\n{context}"),
        _ => question.to_owned(),
    }
}
