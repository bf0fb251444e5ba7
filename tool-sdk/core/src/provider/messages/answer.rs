//! The answer to a call: the result of a tool as a message of the next request carries it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::Outcome;
use crate::content::{Attachment, Output};
use crate::error::ToolError;

/// The answer to one call of a model.
///
/// # Examples
///
/// ```
/// use tool_sdk::ToolError;
/// use tool_sdk::provider::CallAnswer;
///
/// let answer = CallAnswer::error("call_1", "add", &ToolError::not_found("there is no `a`"));
/// assert!(answer.is_error);
/// assert!(answer.text.contains(r#""category":"not_found""#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallAnswer {
    /// The id of the call.
    pub id: String,
    /// The name by which the model called the tool.
    pub name: String,
    /// The text for the model: the result, or the error as JSON with the keys of [`encode_error`].
    pub text: String,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Images and documents of the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Whether compaction leaves the answer as it is; see [`Output::exempt_from_compaction`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_exempt_from_compaction: bool,
    /// What a user interface shows of the result, such as a diff; no model reads it. `None` where it
    /// is larger than 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<Box<Value>>,
}

/// The largest display data that is kept with an answer, in bytes as JSON.
const MAX_DISPLAY_BYTES: usize = 64 << 10;

impl CallAnswer {
    /// Creates the answer of a call that succeeded, with a text.
    #[must_use]
    pub fn text(id: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            text: text.into(),
            is_error: false,
            attachments: Vec::new(),
            is_exempt_from_compaction: false,
            display: None,
        }
    }

    /// Creates the answer of a call that failed.
    #[must_use]
    pub fn error(id: impl Into<String>, name: impl Into<String>, error: &ToolError) -> Self {
        let name = name.into();
        let text = encode_error(&name, error).to_string();
        let attachments = error.output().map_or(&[][..], Output::attachments).to_vec();
        Self { is_error: true, attachments, ..Self::text(id, name, text) }
    }

    /// Creates the answer to the call of `name` that had this outcome.
    #[must_use]
    pub fn from_outcome(name: impl Into<String>, outcome: &Outcome) -> Self {
        let id = outcome.call.to_string();
        match &outcome.result {
            Ok(output) => {
                let attachments = output.attachments().to_vec();
                let is_exempt_from_compaction = output.is_exempt_from_compaction();
                let text = Self::text(id, name, output.as_text());
                let display = output.display_data().filter(|display| is_small(display));
                let display = display.cloned().map(Box::new);
                Self { attachments, is_exempt_from_compaction, display, ..text }
            }
            Err(error) => Self::error(id, name, error),
        }
    }
}

fn is_small(display: &Value) -> bool {
    serde_json::to_vec(display).is_ok_and(|json| json.len() <= MAX_DISPLAY_BYTES)
}

/// Encodes an error for a model: `error`, `category`, `tool`, and `suggestion` where there is one.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ToolError, provider};
///
/// let error = provider::encode_error("add", &ToolError::timeout("no answer within 10 s"));
/// assert_eq!(error["category"], "timeout");
/// ```
#[must_use]
pub fn encode_error(tool: &str, error: &ToolError) -> Value {
    let mut text = error.message().to_owned();
    if let Some(output) = error.output().map(Output::as_text).filter(|text| !text.is_empty()) {
        text.push('\n');
        text.push_str(output);
    }
    json!({
        "error": text,
        "category": error.kind().as_str(),
        "tool": tool,
        "suggestion": error.suggestion(),
    })
}
