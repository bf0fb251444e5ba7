//! What a running tool may want from whoever called it: a form that their user fills in,
//! words of their model, the folders that they work in.
//!
//! The surface lends the way to ask, see [`InquiryHandler`]; where it lends none, and where the
//! other side cannot answer, the tool is told so.
//!
//! **Invariant:** an answer is data of the caller and no approval: it lifts no decision.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Context, Session};
use crate::error::ToolError;

/// One thing that a tool wants to know from whoever called it.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::{Context, Inquiry, ToolError};
///
/// async fn greet(cx: &Context) -> Result<String, ToolError> {
///     let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
///     let name = Inquiry::form("What is your name?", form);
///     let answers = cx.inquire([("name", name), ("roots", Inquiry::roots())]).await?;
///     Ok(format!("hello {}", answers[0]["content"]["name"]))
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    kind: InquiryKind,
    params: Value,
}

/// What kind of inquiry it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InquiryKind {
    /// A form that a person fills in.
    Form,
    /// Words that a model writes.
    Sample,
    /// The folders that the caller works in.
    Roots,
}

impl Inquiry {
    /// Asks the caller's user to fill in a form with the fields of `schema`.
    #[must_use]
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        let params =
            json!({ "mode": "form", "message": message.into(), "requestedSchema": schema });
        Self { kind: InquiryKind::Form, params }
    }

    /// Asks the caller's model to go on after `prompt`.
    #[must_use]
    pub fn sample(prompt: impl Into<String>, max_tokens: u32) -> Self {
        let content = json!({ "type": "text", "text": prompt.into() });
        let messages = json!([{ "role": "user", "content": content }]);
        let params = json!({ "messages": messages, "maxTokens": max_tokens });
        Self { kind: InquiryKind::Sample, params }
    }

    /// Asks the caller's model to go on after a conversation; `params` are those of the
    /// protocol's `sampling/createMessage`.
    #[must_use]
    pub fn conversation(params: Value) -> Self {
        Self { kind: InquiryKind::Sample, params }
    }

    /// Asks for the folders that the caller works in.
    #[must_use]
    pub fn roots() -> Self {
        Self { kind: InquiryKind::Roots, params: json!({}) }
    }

    /// What kind of inquiry it is.
    #[must_use]
    pub fn kind(&self) -> InquiryKind {
        self.kind
    }

    /// What is asked, in the words of the Model Context Protocol.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.params
    }
}

/// What became of a form.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these three")]
pub enum ElicitationOutcome {
    /// It was filled in.
    Accepted(Map<String, Value>),
    /// The user does not want to.
    Declined,
    /// The user closed it.
    Cancelled,
}

impl From<&Value> for ElicitationOutcome {
    /// Whatever does not say that it is accepted is not.
    fn from(answer: &Value) -> Self {
        match answer["action"].as_str() {
            Some("accept") => {
                Self::Accepted(answer["content"].as_object().cloned().unwrap_or_default())
            }
            Some("decline") => Self::Declined,
            _ => Self::Cancelled,
        }
    }
}

/// How those who called are asked; a surface lends it with its sessions.
pub trait InquiryHandler: Send + Sync + 'static {
    /// Whether inquiries of this kind are answered at all.
    fn supports(&self, kind: InquiryKind) -> bool;

    /// Asks all of them, each under its name; gives the answers in the same order.
    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture;
}

/// The answers that a running tool waits for.
pub type InquiryFuture = Pin<Box<dyn Future<Output = Result<Vec<Value>, ToolError>> + Send>>;

/// Lent with a session.
struct InquiryService(Arc<dyn InquiryHandler>);

impl Session {
    /// Lends tools a way to ask whoever calls.
    #[must_use]
    pub fn with_inquiry_handler(self, inquiries: Arc<dyn InquiryHandler>) -> Self {
        self.with_service(InquiryService(inquiries))
    }

    /// Whether whoever calls answers inquiries of this kind.
    #[must_use]
    pub fn can_inquire(&self, kind: InquiryKind) -> bool {
        self.services().get::<InquiryService>().is_some_and(|lent| lent.0.supports(kind))
    }

    /// Asks whoever calls: all inquiries at once, each under its name. The answers come in
    /// the same order, in the words of the Model Context Protocol.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` where nobody can be asked.
    pub async fn inquire<N: Into<String>>(
        &self,
        inquiries: impl IntoIterator<Item = (N, Inquiry)>,
    ) -> Result<Vec<Value>, ToolError> {
        self.start_inquiries(into_named(inquiries))?.await
    }

    fn start_inquiries(
        &self,
        inquiries: Vec<(String, Inquiry)>,
    ) -> Result<InquiryFuture, ToolError> {
        let lent = self.services().get::<InquiryService>().ok_or_else(no_inquiry_handler)?;
        Ok(Arc::clone(&lent.0).inquire(inquiries))
    }
}

fn into_named<N: Into<String>>(
    inquiries: impl IntoIterator<Item = (N, Inquiry)>,
) -> Vec<(String, Inquiry)> {
    inquiries.into_iter().map(|(name, it)| (name.into(), it)).collect()
}

fn no_inquiry_handler() -> ToolError {
    ToolError::unavailable("the tool has a question, and whoever calls cannot be asked here")
        .hint("call it from a client that can answer, or give what it asks for as an argument")
}

/// Questions to whoever called.
impl Context {
    /// Asks whoever called, see [`Session::inquire`]. The time that somebody takes to fill in a
    /// form is not on the time of the call.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` where nobody can be asked, or where a person is asked and
    /// says nothing for as long as the pipeline waits for people.
    pub async fn inquire<N: Into<String>>(
        &self,
        inquiries: impl IntoIterator<Item = (N, Inquiry)>,
    ) -> Result<Vec<Value>, ToolError> {
        let inquiries = into_named(inquiries);
        let is_for_people = inquiries.iter().any(|(_, it)| it.kind() == InquiryKind::Form);
        let answers = self.session().start_inquiries(inquiries)?;
        match &self.sink {
            Some(sink) if is_for_people => {
                Arc::clone(sink).await_inquiry(self.clone(), answers).await
            }
            _ => answers.await,
        }
    }

    /// Lets the caller's user fill in a form.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` where nobody can be asked.
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        schema: Value,
    ) -> Result<ElicitationOutcome, ToolError> {
        let answers = self.inquire([("form", Inquiry::form(message, schema))]).await?;
        Ok(answers.first().map_or(ElicitationOutcome::Cancelled, ElicitationOutcome::from))
    }

    /// Lets the caller's model go on after `prompt`; gives its words.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` where no model can be asked, or where it answers with
    /// anything but text.
    pub async fn sample(
        &self,
        prompt: impl Into<String>,
        max_tokens: u32,
    ) -> Result<String, ToolError> {
        let answers = self.inquire([("words", Inquiry::sample(prompt, max_tokens))]).await?;
        let text = answers.first().and_then(|answer| answer["content"]["text"].as_str());
        text.map(str::to_owned)
            .ok_or_else(|| ToolError::unavailable("the caller's model did not answer with a text"))
    }
}

impl fmt::Debug for InquiryService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InquiryService")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallId;
    use crate::error::ErrorKind;
    use crate::name::ToolName;

    // What nobody can answer is not answered, and the tool is told so.
    #[tokio::test]
    async fn without_anybody_to_ask_there_is_no_answer() {
        let cx = Context::new(Session::default(), ToolName::from_static("t"), CallId::generate());
        assert!(!cx.session().can_inquire(InquiryKind::Form));
        let form = cx.elicit("your name?", json!({ "type": "object" })).await.unwrap_err();
        assert_eq!(form.kind(), ErrorKind::Unavailable);
        assert_eq!(cx.sample("go on", 10).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn only_what_says_so_is_accepted() {
        let name = json!({ "name": "ada" });
        for (answer, expected) in [
            (
                json!({ "action": "accept", "content": name }),
                ElicitationOutcome::Accepted(name.as_object().unwrap().clone()),
            ),
            (json!({ "action": "decline", "content": name }), ElicitationOutcome::Declined),
            (json!({ "action": "cancel" }), ElicitationOutcome::Cancelled),
            (json!({ "content": name }), ElicitationOutcome::Cancelled),
            (json!(5), ElicitationOutcome::Cancelled),
        ] {
            assert_eq!(ElicitationOutcome::from(&answer), expected, "{answer}");
        }
    }
}
