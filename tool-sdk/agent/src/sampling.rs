//! Lets the model of an agent answer sampling requests: texts that a tool, or a foreign MCP server
//! behind it, asks the caller's model for.
//!
//! **Invariant:** the request reaches the model without the conversation and without tools. Whether a
//! server may ask at all is decided before, under the permission `mcp_sampling`.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tool_sdk_core::provider::StopReason;
use tool_sdk_core::{
    Attachment, Inquiry, InquiryFuture, InquiryHandler, InquiryKind, Session, ToolError,
};

use crate::model::{ModelClient, ModelRequest};
use crate::spending::SpendingBudget;
use crate::subagents::SubagentModel;
use crate::transcript::Transcript;

/// The maximum number of tokens of an answer, also when the request asks for more.
const MAX_TOKENS: u64 = 8192;

/// Answers sampling requests by a model, and all other inquiries by the handler that the session has.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{SamplingHandler, ScriptedModel, SpendingBudget, SubagentModel};
/// use tool_sdk::environment::{Inquiry, InquiryKind};
/// use tool_sdk::Session;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let choose = || SubagentModel::new(ScriptedModel::new().says("Four lines."));
/// let session =
///     SamplingHandler::new(choose, SpendingBudget::default()).attach_to(Session::new("s"));
/// let answers = session.inquire([("summary", Inquiry::sample("Summarize it.", 100))]).await?;
/// assert_eq!(answers[0]["content"]["text"], "Four lines.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SamplingHandler {
    choose_model: Box<dyn Fn() -> SubagentModel + Send + Sync>,
    budget: SpendingBudget,
    others: Option<Arc<dyn InquiryHandler>>,
}

impl fmt::Debug for SamplingHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SamplingHandler").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl SamplingHandler {
    /// Creates a handler. `choose_model` returns the model of the moment; `budget` pays.
    #[must_use]
    pub fn new(
        choose_model: impl Fn() -> SubagentModel + Send + Sync + 'static,
        budget: SpendingBudget,
    ) -> Self {
        Self { choose_model: Box::new(choose_model), budget, others: None }
    }

    /// Sets the handler of a session. The one that it has answers all other inquiries.
    #[must_use]
    pub fn attach_to(mut self, session: Session) -> Session {
        self.others = session.inquiry_handler();
        session.with_inquiry_handler(Arc::new(self))
    }

    async fn answer(&self, inquiry: &Inquiry) -> Result<Value, ToolError> {
        let params = inquiry.params();
        let (text, images) = sampling_prompt(params)?;
        let mut transcript = Transcript::default();
        transcript.push_user(text, images);
        self.budget.check().map_err(ToolError::unavailable)?;
        let model = (self.choose_model)();
        let mut request = ModelRequest::new(&transcript);
        request.system = params["systemPrompt"].as_str().unwrap_or_default();
        let tokens = params["maxTokens"].as_u64().unwrap_or(MAX_TOKENS).min(MAX_TOKENS);
        request.max_output_tokens = u32::try_from(tokens).ok();
        let message = model.respond(&request, &mut |_| {}).await.map_err(|error| {
            ToolError::unavailable(format_args!("the model did not answer: {error}"))
        })?;
        let cost = model.price.map(|price| price.cost(message.usage));
        self.budget.charge_tokens(message.usage, cost);
        let stop = match message.stop {
            StopReason::MaxTokens => "maxTokens",
            _ => "endTurn",
        };
        Ok(json!({
            "role": "assistant",
            "content": { "type": "text", "text": message.text() },
            "model": model.name(),
            "stopReason": stop,
        }))
    }
}

impl InquiryHandler for SamplingHandler {
    fn supports(&self, kind: InquiryKind) -> bool {
        let others = || self.others.as_ref().is_some_and(|others| others.supports(kind));
        kind == InquiryKind::Sample || others()
    }

    fn supports_secrets(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.supports_secrets())
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(inquiries.len());
            for (name, inquiry) in inquiries {
                if inquiry.kind() == InquiryKind::Sample {
                    answers.push(self.answer(&inquiry).await?);
                    continue;
                }
                let others = self.others.clone().ok_or_else(|| {
                    ToolError::unavailable("there is no user who can answer questions")
                })?;
                answers.extend(others.inquire(vec![(name, inquiry)]).await?);
            }
            Ok(answers)
        })
    }
}

/// Returns the messages of a sampling request as one prompt, with their images.
fn sampling_prompt(params: &Value) -> Result<(String, Vec<Attachment>), ToolError> {
    let messages = params["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut images = Vec::new();
    let mut texts = Vec::new();
    for message in messages {
        let content = &message["content"];
        let parts = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
        let lines: Vec<String> =
            parts.iter().map(|part| read_part(part, &mut images)).collect::<Result<_, _>>()?;
        texts.push(lines.join("\n"));
    }
    let text = match &*texts {
        [] => return Err(ToolError::invalid_args("a sampling request needs messages")),
        [one] => one.clone(),
        texts => {
            let role = |message: &Value| message["role"].as_str().unwrap_or("user").to_owned();
            let lines = messages.iter().zip(texts);
            let lines = lines.map(|(message, text)| format!("{}: {text}", role(message)));
            let conversation = lines.collect::<Vec<_>>().join("\n\n");
            format!("Continue this conversation as the assistant.\n\n{conversation}")
        }
    };
    Ok((text, images))
}

/// Returns the text of a part of a message. An image is added to `images`, and named in its place.
fn read_part(part: &Value, images: &mut Vec<Attachment>) -> Result<String, ToolError> {
    if let Some(text) = part["text"].as_str() {
        return Ok(text.to_owned());
    }
    let image = part["data"].as_str().zip(part["mimeType"].as_str());
    let image = image.filter(|(_, mime)| part["type"] == "image" && mime.starts_with("image/"));
    let bytes = image.and_then(|(data, mime)| Some((mime, BASE64_STANDARD.decode(data).ok()?)));
    let (mime, bytes) = bytes.ok_or_else(|| {
        ToolError::invalid_args("a sampling request has messages of text and of images in base64")
    })?;
    images.push(Attachment::bytes(mime, bytes));
    Ok(format!("(image {})", images.len()))
}

#[cfg(test)]
mod tests {
    use tool_sdk_core::{ElicitationOutcome, ScriptedAnswers};

    use super::*;
    use crate::model::ScriptedModel;

    fn handler() -> SamplingHandler {
        let choose = || SubagentModel::new(ScriptedModel::new().says("Yes."));
        SamplingHandler::new(choose, SpendingBudget::default())
    }

    #[tokio::test]
    async fn the_model_samples_and_the_user_answers_forms() {
        let script = ScriptedAnswers::new([ElicitationOutcome::Declined]);
        let session = Session::new("s").with_inquiry_handler(Arc::new(script));
        let session = handler().attach_to(session);
        let asked = [
            ("form", Inquiry::form("Go on?", json!({ "type": "object", "properties": {} }))),
            ("text", Inquiry::sample("Is it so?", 10)),
        ];
        let answers = session.inquire(asked).await.unwrap();
        assert_eq!(answers[0]["action"], "decline");
        assert_eq!(answers[1]["content"]["text"], "Yes.");
        let alone = handler().attach_to(Session::new("t"));
        assert!(alone.can_inquire(InquiryKind::Sample) && !alone.can_inquire(InquiryKind::Form));
    }

    #[test]
    fn messages_become_one_prompt() {
        let text = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
        let one = json!({ "messages": [text("user", "Hi")] });
        assert_eq!(sampling_prompt(&one).unwrap(), ("Hi".to_owned(), vec![]));
        let two = json!({ "messages": [text("user", "Hi"), text("assistant", "Hello")] });
        assert!(sampling_prompt(&two).unwrap().0.ends_with("user: Hi\n\nassistant: Hello"));
        assert!(sampling_prompt(&json!({})).is_err());
    }
    #[test]
    fn images_are_attached_to_the_prompt() {
        let image = |data: &str| json!({ "type": "image", "data": data, "mimeType": "image/png" });
        let message = |parts: Value| json!({ "messages": [{ "role": "user", "content": parts }] });
        let asked = message(json!([{ "type": "text", "text": "What is it?" }, image("iVBORw==")]));
        let (text, images) = sampling_prompt(&asked).unwrap();
        assert_eq!(text, "What is it?\n(image 1)");
        assert_eq!(images, [Attachment::bytes("image/png", b"\x89PNG".to_vec())]);
        assert!(sampling_prompt(&message(image("no base64!"))).is_err());
        assert!(sampling_prompt(&message(json!({ "type": "audio", "data": "" }))).is_err());
    }
}
