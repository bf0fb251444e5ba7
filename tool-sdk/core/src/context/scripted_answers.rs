//! An inquiry handler whose answers are known beforehand, for tests and for programs that run
//! without a user.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{ElicitationOutcome, Inquiry, InquiryFuture, InquiryHandler, InquiryKind};
use crate::error::ToolError;

/// Answers the forms of tools with the given answers, in their order. A form after the last answer
/// fails with kind `unavailable`.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tool_sdk::{ElicitationOutcome, ScriptedAnswers, Session};
///
/// let name = serde_json::Map::from_iter([("name".to_owned(), "ada".into())]);
/// let script = ScriptedAnswers::new([ElicitationOutcome::Accepted(name), ElicitationOutcome::Declined]);
/// let session = Session::new("s1").with_inquiry_handler(Arc::new(script));
/// ```
pub struct ScriptedAnswers {
    answers: Mutex<VecDeque<ElicitationOutcome>>,
    asked: Mutex<Vec<Value>>,
}

impl ScriptedAnswers {
    /// Creates a handler with these answers.
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = ElicitationOutcome>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() }
    }

    /// Returns the parameters of the forms so far.
    #[must_use]
    pub fn asked_forms(&self) -> Vec<Value> {
        lock(&self.asked).clone()
    }

    fn answer_form(&self, inquiry: &Inquiry) -> Result<Value, ToolError> {
        if inquiry.kind() != InquiryKind::Form {
            return Err(ToolError::unavailable("the script only answers forms"));
        }
        lock(&self.asked).push(inquiry.params().clone());
        match lock(&self.answers).pop_front() {
            Some(ElicitationOutcome::Accepted(content)) => {
                Ok(json!({ "action": "accept", "content": content }))
            }
            Some(ElicitationOutcome::Declined) => Ok(json!({ "action": "decline" })),
            Some(ElicitationOutcome::Cancelled) => Ok(json!({ "action": "cancel" })),
            None => Err(ToolError::unavailable("the script has no further answer")),
        }
    }
}

/// A poisoned lock still guards whole values: no operation panics half-way.
fn lock<T>(values: &Mutex<T>) -> MutexGuard<'_, T> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InquiryHandler for ScriptedAnswers {
    fn supports(&self, kind: InquiryKind) -> bool {
        kind == InquiryKind::Form
    }

    fn supports_secrets(&self) -> bool {
        true
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move { inquiries.iter().map(|(_, it)| self.answer_form(it)).collect() })
    }
}

impl fmt::Debug for ScriptedAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedAnswers").field("left", &lock(&self.answers).len()).finish()
    }
}
