//! The elicitation form that asks the client's user to approve a call.
//!
//! **Invariant:** every answer except an accepted form with one of the offered choices is a
//! rejection.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tool_sdk_core::{ApprovalRequest, ApprovalResponse, GrantScope};

const ANSWER_FIELD: &str = "answer";
const FEEDBACK_FIELD: &str = "feedback";

/// Returns the form that shows `ask`.
pub(super) fn build_approval_form(
    ask: &ApprovalRequest,
    reach: GrantScope,
) -> Result<ElicitRequestParams, ErrorData> {
    let (answers, titles): (&[&str], &[&str]) = match offers_session(ask, reach) {
        true => (
            &["once", "session", "reject"],
            &["Yes, once", "Yes, and what is like it in this session", "No"],
        ),
        false => (&["once", "reject"], &["Yes, once", "No"]),
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
                    // The form of titles that every version of the protocol has.
                    "enumNames": titles,
                },
                FEEDBACK_FIELD: {
                    "type": "string",
                    "title": "What to do instead",
                    "description": "Only with `reject`: the model reads it and goes on.",
                    // Some clients refuse a form with an optional field that has no default.
                    "default": "",
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
pub(super) fn parse_approval(
    ask: &ApprovalRequest,
    reach: GrantScope,
    answered: &ElicitResult,
) -> ApprovalResponse {
    ask.set_responder("client");
    if answered.action != ElicitationAction::Accept {
        return ApprovalResponse::Reject;
    }
    let field = |name| answered.content.as_ref()?.get(name).and_then(Value::as_str);
    match field(ANSWER_FIELD) {
        Some("once") => ApprovalResponse::Once,
        Some("session") if offers_session(ask, reach) => {
            ApprovalResponse::Session { patterns: ask.suggestions.clone() }
        }
        _ => match field(FEEDBACK_FIELD).map(str::trim).filter(|words| !words.is_empty()) {
            Some(words) => ApprovalResponse::RejectWith { feedback: words.to_owned() },
            None => ApprovalResponse::Reject,
        },
    }
}

fn offers_session(ask: &ApprovalRequest, reach: GrantScope) -> bool {
    reach == GrantScope::Session && ask.offers_always()
}
