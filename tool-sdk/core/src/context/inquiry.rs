//! Lets a running tool ask its caller: a form for the user, an address that the user opens, a
//! completion by the caller's model, or the caller's root folders.
//!
//! The surface provides an [`InquiryHandler`] with the session. Without a handler, and when the
//! client cannot answer, the inquiry fails with kind `unavailable`.
//!
//! **Invariant:** an answer is data of the caller and not an approval: it changes no decision.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Context, Session};
use crate::error::ToolError;

/// One question that a tool asks its caller.
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

/// The kind of an inquiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum InquiryKind {
    /// A form that the user fills in.
    Form,
    /// An address that the user opens, for what must not go through the client, such as a login.
    Url,
    /// A text that the caller's model writes.
    Sample,
    /// The folders that the caller works in.
    Roots,
}

impl Inquiry {
    /// Asks the caller's user to fill in a form with the fields of `schema`.
    ///
    /// The fields are texts, numbers, booleans and choices. A choice of one is
    /// `{"type": "string", "oneOf": [{"const": "s", "title": "Small"}]}`, and of several
    /// `{"type": "array", "items": {"anyOf": [{"const": "s", "title": "Small"}]}}`: the user sees the
    /// titles, and the answer has the values.
    #[must_use]
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        let params =
            json!({ "mode": "form", "message": message.into(), "requestedSchema": schema });
        Self { kind: InquiryKind::Form, params }
    }

    /// Asks the caller's user to open `url`, where the user answers the server that the address
    /// belongs to. The answer says whether the user agreed, and has no content.
    #[must_use]
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        let params = json!({ "mode": "url", "message": message.into(), "url": url.into() });
        Self { kind: InquiryKind::Url, params }
    }

    /// Asks the caller's model to complete `prompt`.
    #[must_use]
    pub fn sample(prompt: impl Into<String>, max_tokens: u32) -> Self {
        let content = json!({ "type": "text", "text": prompt.into() });
        let messages = json!([{ "role": "user", "content": content }]);
        let params = json!({ "messages": messages, "maxTokens": max_tokens });
        Self { kind: InquiryKind::Sample, params }
    }

    /// Asks the caller's model to continue a conversation; `params` are those of the protocol's
    /// `sampling/createMessage`.
    #[must_use]
    pub fn conversation(params: Value) -> Self {
        Self { kind: InquiryKind::Sample, params }
    }

    /// Asks for the folders that the caller works in.
    #[must_use]
    pub fn roots() -> Self {
        Self { kind: InquiryKind::Roots, params: json!({}) }
    }

    /// Returns the kind of the inquiry.
    #[must_use]
    pub fn kind(&self) -> InquiryKind {
        self.kind
    }

    /// Returns whether a person answers the inquiry.
    fn is_for_user(&self) -> bool {
        matches!(self.kind, InquiryKind::Form | InquiryKind::Url)
    }

    /// Returns the parameters, as the Model Context Protocol defines them.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.params
    }
}

/// The result of a form, or of an address to open.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these three")]
pub enum ElicitationOutcome {
    /// The user filled it in, or agreed to open the address.
    Accepted(Map<String, Value>),
    /// The user declined.
    Declined,
    /// The user closed the form.
    Cancelled,
}

impl From<&Value> for ElicitationOutcome {
    /// Treats every answer without a known `action` as cancelled.
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

/// Answers the inquiries of tools; a surface provides it with its sessions.
pub trait InquiryHandler: Send + Sync + 'static {
    /// Returns whether inquiries of this kind can be answered.
    fn supports(&self, kind: InquiryKind) -> bool;

    /// Returns whether the caller may be asked for secrets: a form may then have fields with
    /// `"format": "password"`, whose values are not shown while the user types them. `false` by
    /// default.
    fn supports_secrets(&self) -> bool {
        false
    }

    /// Asks all inquiries at once, each under its name; returns the answers in the same order.
    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture;
}

/// The answers that a running tool waits for.
pub type InquiryFuture = Pin<Box<dyn Future<Output = Result<Vec<Value>, ToolError>> + Send>>;

/// The handler, stored as a service of the session.
struct InquiryService(Arc<dyn InquiryHandler>);

impl Session {
    /// Sets the handler that answers the inquiries of tools.
    #[must_use]
    pub fn with_inquiry_handler(self, inquiries: Arc<dyn InquiryHandler>) -> Self {
        self.with_service(InquiryService(inquiries))
    }

    /// Returns whether the caller can answer inquiries of this kind.
    #[must_use]
    pub fn can_inquire(&self, kind: InquiryKind) -> bool {
        self.services().get::<InquiryService>().is_some_and(|lent| lent.0.supports(kind))
    }

    /// Returns whether the caller can fill in forms with fields for
    /// [secrets](InquiryHandler::supports_secrets).
    #[must_use]
    pub fn can_inquire_secrets(&self) -> bool {
        let lent = self.services().get::<InquiryService>();
        lent.is_some_and(|lent| lent.0.supports(InquiryKind::Form) && lent.0.supports_secrets())
    }

    /// Returns the handler that answers the inquiries of tools.
    #[must_use]
    pub fn inquiry_handler(&self) -> Option<Arc<dyn InquiryHandler>> {
        let lent = self.services().get::<InquiryService>()?;
        Some(Arc::clone(&lent.0))
    }

    /// Asks the caller all inquiries at once, each under its name. Returns the answers in the
    /// same order, as the Model Context Protocol defines them.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` when the session has no handler, or the caller cannot
    /// answer.
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
    ToolError::unavailable("the tool asks a question, but the client cannot answer questions")
        .hint("call it from a client that can answer, or pass the answer as an argument")
}

/// Inquiries to the caller.
impl Context {
    /// Asks the caller, see [`Session::inquire`]. The time limit of the call stops while the user
    /// fills in a form.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` when the caller cannot answer, and with kind `timeout` when the
    /// user does not answer within the [approval timeout](crate::Pipeline::approval_timeout).
    pub async fn inquire<N: Into<String>>(
        &self,
        inquiries: impl IntoIterator<Item = (N, Inquiry)>,
    ) -> Result<Vec<Value>, ToolError> {
        let mut inquiries = into_named(inquiries);
        if let Some(sink) = &self.sink {
            inquiries.iter_mut().for_each(|(_, it)| sink.mask_inquiry(self, &mut it.params));
        }
        let is_for_people = inquiries.iter().any(|(_, it)| it.is_for_user());
        let answers = self.session().start_inquiries(inquiries)?;
        match &self.sink {
            Some(sink) if is_for_people => {
                Arc::clone(sink).await_inquiry(self.clone(), answers).await
            }
            _ => answers.await,
        }
    }

    /// Asks the caller's user to fill in a form.
    ///
    /// # Errors
    ///
    /// Fails like [`inquire`](Self::inquire).
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        schema: Value,
    ) -> Result<ElicitationOutcome, ToolError> {
        let answers = self.inquire([("form", Inquiry::form(message, schema))]).await?;
        Ok(answers.first().map_or(ElicitationOutcome::Cancelled, ElicitationOutcome::from))
    }

    /// Asks the caller's user to open `url`, see [`Inquiry::url`]. An accepted outcome says that the
    /// user agreed to open the address, and not that the user has finished there.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` when the caller cannot show addresses; ask
    /// [`Session::can_inquire`] first, and put the address into the result otherwise.
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<ElicitationOutcome, ToolError> {
        let answers = self.inquire([("url", Inquiry::url(message, url))]).await?;
        Ok(answers.first().map_or(ElicitationOutcome::Cancelled, ElicitationOutcome::from))
    }

    /// Asks the caller's model to complete `prompt`; returns its text.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` when the caller has no model, or when the answer is not a
    /// text.
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

    // Without a handler, every inquiry fails with `unavailable`.
    #[tokio::test]
    async fn an_inquiry_without_a_handler_is_unavailable() {
        let cx = Context::new(Session::default(), ToolName::from_static("t"), CallId::generate());
        assert!(!cx.session().can_inquire(InquiryKind::Form));
        let form = cx.elicit("your name?", json!({ "type": "object" })).await.unwrap_err();
        assert_eq!(form.kind(), ErrorKind::Unavailable);
        let page = cx.elicit_url("log in", "https://example.com/login").await.unwrap_err();
        assert_eq!(page.kind(), ErrorKind::Unavailable);
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
