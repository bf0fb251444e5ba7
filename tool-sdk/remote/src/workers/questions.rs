//! What a running tool of a worker asks: the host's own channels answer, as they answer its own tools.
//!
//! A form goes to the user of the calling session, with a line that says where it comes from. A
//! permission is decided by the host's rules, grants and mode under a permission of the namespace, and
//! asked about like any other.
//!
//! **Invariant:** an answer is signed for one question of one worker, and nothing that a worker says
//! allows anything.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::Duration;
use tool_sdk_core::internal::{is_secret_key, spell_hidden};
use tool_sdk_core::{Context, ElicitationOutcome, FailureRecord, Inquiry, InquiryKind, ToolError};

use super::tool::RemoteToolState;
use crate::error::RemoteError;
use crate::permit::{PermitPurpose, is_random_id};
use crate::protocol::{
    ANSWER, HostAnswer, MAX_QUESTIONS, RequestedPermission, ToolQuestion, answer_digest,
    request_headers, worker_subject,
};

/// How long the permit of an answer is valid.
const ANSWER_LIFETIME: Duration = Duration::from_secs(10);

/// The most fields of a form, and bytes of a question; a person does not review more.
const MAX_FIELDS: usize = 32;
const MAX_QUESTION: usize = 32 << 10;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 256 << 10;

/// Answers the questions of one running call.
pub(super) struct QuestionHandler<'a> {
    tool: &'a RemoteToolState,
    worker: &'a str,
    cx: &'a Context,
    /// Held while a question is open, so that the user sees one at a time.
    turn: Mutex<usize>,
}

impl<'a> QuestionHandler<'a> {
    pub(super) fn new(tool: &'a RemoteToolState, worker: &'a str, cx: &'a Context) -> Self {
        Self { tool, worker, cx, turn: Mutex::new(0) }
    }

    /// Answers a question.
    pub(super) async fn handle_question(&self, id: String, question: ToolQuestion) {
        if !is_random_id(&id) {
            return tracing::debug!("a question without a valid id was ignored");
        }
        let answered = {
            let mut asked = self.turn.lock().await;
            *asked += 1;
            match *asked > MAX_QUESTIONS {
                true => Err(ToolError::unavailable("the tool asked too often during one call")),
                false => self.answer_question(question).await,
            }
        };
        let answer = answered.unwrap_or_else(|error| HostAnswer::Failed((&error).into()));
        if let Err(error) = self.send_answer(&id, answer).await {
            tracing::warn!(%error, "the answer to a question of a worker was not sent");
        }
    }

    async fn answer_question(&self, question: ToolQuestion) -> Result<HostAnswer, ToolError> {
        if serde_json::to_vec(&question).map_or(true, |bytes| bytes.len() > MAX_QUESTION) {
            return Err(refused("it is too large for a person to read"));
        }
        match question {
            ToolQuestion::Form(params) => self.show_form(&params).await.map(HostAnswer::Form),
            ToolQuestion::Permission(requested) => {
                self.decide_permission(&requested).await.map(HostAnswer::Permission)
            }
        }
    }

    async fn show_form(&self, params: &Value) -> Result<Value, ToolError> {
        if !self.cx.session().can_inquire(InquiryKind::Form) {
            return Err(ToolError::unavailable("the host of the call cannot show forms"));
        }
        let form = ForwardedForm::parse(params).map_err(refused)?;
        let message = format!(
            "A worker of `{}` asks this while its tool `{}` runs. What you answer goes to that \
             worker, so no passwords and no keys.\n\n{}",
            self.tool.workers.config.namespace, self.tool.remote_name, form.message
        );
        let inquiry = Inquiry::form(message, form.schema.clone());
        let answers = self.cx.inquire([("form", inquiry)]).await?;
        Ok(match answers.first().map_or(ElicitationOutcome::Cancelled, ElicitationOutcome::from) {
            ElicitationOutcome::Accepted(content) => {
                json!({ "action": "accept", "content": form.select_fields(content) })
            }
            ElicitationOutcome::Declined => json!({ "action": "decline" }),
            ElicitationOutcome::Cancelled => json!({ "action": "cancel" }),
        })
    }

    async fn decide_permission(&self, requested: &RequestedPermission) -> Result<bool, ToolError> {
        let plain = &requested.permission;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
        if plain.is_empty() || !plain.chars().all(is_name) {
            return Err(refused("its permission is not a name"));
        }
        let permission = self.tool.workers.config.namespace.prefix() + plain;
        let what = requested.access().denied_under(plain);
        Ok(self.cx.request_permission(permission, what).await)
    }

    /// Sends an answer to the worker that runs the call, signed for this question.
    async fn send_answer(&self, id: &str, answer: HostAnswer) -> Result<(), RemoteError> {
        let mut bytes = serde_json::to_vec(&answer).map_err(RemoteError::request)?;
        if bytes.len() > MAX_ANSWER.min(self.tool.workers.payloads.max_message()) {
            let failure = FailureRecord::from(&refused("the answer is too large"));
            bytes =
                serde_json::to_vec(&HostAnswer::Failed(failure)).map_err(RemoteError::request)?;
        }
        let workers = &self.tool.workers;
        let binding = answer_digest(id, &bytes);
        let (purpose, lifetime) = (PermitPurpose::Answer, ANSWER_LIFETIME);
        let permit = self.tool.permit(purpose, self.worker, binding, lifetime, self.cx);
        let headers = request_headers(&workers.config.signer.sign(&permit)?, self.cx);
        let verb = format!("{ANSWER}.{id}");
        let subject = worker_subject(&workers.config.namespace, self.worker, &verb);
        let client = &workers.payloads.client;
        let sent = client.publish_with_headers(subject, headers, Bytes::from(bytes)).await;
        sent.map_err(RemoteError::request)
    }
}

/// Returns the error of a question that is not shown.
fn refused(why: &str) -> ToolError {
    ToolError::unavailable(format_args!("the host did not show the question: {why}"))
}

/// A form that may be shown to the user.
#[derive(Debug)]
struct ForwardedForm {
    message: String,
    schema: Value,
}

impl ForwardedForm {
    /// Reads the parameters of a form.
    ///
    /// # Errors
    ///
    /// Returns why the form must not be shown.
    fn parse(params: &Value) -> Result<Self, &'static str> {
        let schema = params["requestedSchema"].clone();
        let Some(fields) = schema["properties"].as_object() else {
            return Err("it has no fields");
        };
        if fields.len() > MAX_FIELDS {
            return Err("it is too large for a person to read");
        }
        let is_secret =
            |(name, field): (&String, &Value)| is_secret_key(name) || field["format"] == "password";
        if fields.iter().any(is_secret) {
            return Err("it asks for a secret");
        }
        if has_hidden_text(&schema) {
            return Err("it contains invisible characters");
        }
        let message = params["message"].as_str().unwrap_or_default();
        Ok(Self { message: spell_hidden(message).into_owned(), schema })
    }

    /// Returns of an answer the fields that the form asks for.
    fn select_fields(&self, mut content: Map<String, Value>) -> Map<String, Value> {
        let fields = self.schema["properties"].as_object();
        content.retain(|name, _| fields.is_some_and(|fields| fields.contains_key(name)));
        content
    }
}

/// Whether any text or key contains invisible characters.
fn has_hidden_text(value: &Value) -> bool {
    let is_hidden = |text: &str| spell_hidden(text) != *text;
    match value {
        Value::String(text) => is_hidden(text),
        Value::Array(items) => items.iter().any(has_hidden_text),
        Value::Object(members) => {
            members.iter().any(|(key, one)| is_hidden(key) || has_hidden_text(one))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_fields(fields: Value) -> Result<ForwardedForm, &'static str> {
        let schema = json!({ "type": "object", "properties": fields });
        ForwardedForm::parse(&json!({ "message": "na\u{200b}me?", "requestedSchema": schema }))
    }

    #[test]
    fn a_form_shows_what_it_is() {
        let form = parse_fields(json!({ "name": { "type": "string" } })).unwrap();
        assert_eq!(form.message, "na\\u{200b}me?");
        let content = json!({ "name": "ada", "home": "/root" });
        let kept = form.select_fields(content.as_object().unwrap().clone());
        assert_eq!(Value::from(kept), json!({ "name": "ada" }));
        let many: Map<_, _> = (0..=MAX_FIELDS).map(|n| (n.to_string(), json!({}))).collect();
        for (fields, why) in [
            (json!({ "api_token": { "type": "string" } }), "secret"),
            (json!({ "x": { "type": "string", "format": "password" } }), "secret"),
            (json!({ "x": { "enum": ["a\u{202e}"] } }), "invisible"),
            (json!({ "a\u{200b}": {} }), "invisible"),
            (many.into(), "too large"),
            (json!(1), "no fields"),
        ] {
            let refused = parse_fields(fields.clone()).unwrap_err();
            assert!(refused.contains(why), "{fields}: {refused}");
        }
    }
}
