//! The elicitation form that asks the client's user to approve a call.
//!
//! **Invariant:** every answer except an accepted form with one of the offered choices is a
//! rejection.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::permission::{Ask, Extent, Reply};

const ANSWER_FIELD: &str = "answer";
const FEEDBACK_FIELD: &str = "feedback";

/// Returns the form that shows `ask`.
pub(super) fn build_approval_form(
    ask: &Ask,
    reach: Extent,
) -> Result<ElicitRequestParams, ErrorData> {
    let answers: &[&str] = match offers_session(ask, reach) {
        true => &["once", "session", "reject"],
        false => &["once", "reject"],
    };
    let form = json!({
        "mode": "form",
        "message": ask.prompt_up_to(reach).text,
        "requestedSchema": {
            "type": "object",
            "properties": {
                ANSWER_FIELD: {
                    "type": "string",
                    "title": "May it run?",
                    "enum": answers,
                },
                FEEDBACK_FIELD: {
                    "type": "string",
                    "title": "What to do instead",
                    "description": "Only with `reject`: the model reads it and goes on.",
                },
            },
            "required": [ANSWER_FIELD],
        },
    });
    ElicitRequestParams::deserialize(&form).map_err(|error| {
        ErrorData::internal_error(format!("cannot build the approval form: {error}"), None)
    })
}

/// Converts the answer to [`build_approval_form`] into an approval response.
pub(super) fn parse_approval(ask: &Ask, reach: Extent, answered: &ElicitResult) -> Reply {
    ask.answered_by("client");
    if answered.action != ElicitationAction::Accept {
        return Reply::Reject;
    }
    let field = |name| answered.content.as_ref()?.get(name).and_then(Value::as_str);
    match field(ANSWER_FIELD) {
        Some("once") => Reply::Once,
        Some("session") if offers_session(ask, reach) => {
            Reply::Session { patterns: ask.suggestions.clone() }
        }
        _ => match field(FEEDBACK_FIELD).map(str::trim).filter(|words| !words.is_empty()) {
            Some(words) => Reply::RejectWith { feedback: words.to_owned() },
            None => Reply::Reject,
        },
    }
}

fn offers_session(ask: &Ask, reach: Extent) -> bool {
    reach == Extent::Session && ask.offers_always()
}
