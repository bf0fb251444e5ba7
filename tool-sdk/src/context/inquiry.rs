//! What a running tool may want from whoever called it: a form that their user fills in,
//! words of their model, the folders that they work in.
//!
//! The surface lends the way to ask, see [`Inquiries`]; where it lends none, and where the
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
pub enum Elicited {
    /// It was filled in.
    Accepted(Map<String, Value>),
    /// The user does not want to.
    Declined,
    /// The user closed it.
    Cancelled,
}

impl From<&Value> for Elicited {
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
pub trait Inquiries: Send + Sync + 'static {
    /// Whether inquiries of this kind are answered at all.
    fn can(&self, kind: InquiryKind) -> bool;

    /// Asks all of them, each under its name; gives the answers in the same order.
    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> Inquiring;
}

/// The answers that a running tool waits for.
pub type Inquiring = Pin<Box<dyn Future<Output = Result<Vec<Value>, ToolError>> + Send>>;

/// Lent with a session.
struct Lent(Arc<dyn Inquiries>);

impl Session {
    /// Lends tools a way to ask whoever calls.
    #[must_use]
    pub fn with_inquiries(self, inquiries: Arc<dyn Inquiries>) -> Self {
        self.lend(Lent(inquiries))
    }

    /// Whether whoever calls answers inquiries of this kind.
    #[must_use]
    pub fn can_inquire(&self, kind: InquiryKind) -> bool {
        self.lent().get::<Lent>().is_some_and(|lent| lent.0.can(kind))
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
        self.inquiring(named(inquiries))?.await
    }

    fn inquiring(&self, inquiries: Vec<(String, Inquiry)>) -> Result<Inquiring, ToolError> {
        let lent = self.lent().get::<Lent>().ok_or_else(nobody)?;
        Ok(Arc::clone(&lent.0).inquire(inquiries))
    }
}

fn named<N: Into<String>>(
    inquiries: impl IntoIterator<Item = (N, Inquiry)>,
) -> Vec<(String, Inquiry)> {
    inquiries.into_iter().map(|(name, it)| (name.into(), it)).collect()
}

fn nobody() -> ToolError {
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
        let inquiries = named(inquiries);
        let is_for_people = inquiries.iter().any(|(_, it)| it.kind() == InquiryKind::Form);
        let answers = self.session().inquiring(inquiries)?;
        match &self.sink {
            Some(sink) if is_for_people => Arc::clone(sink).think(self.clone(), answers).await,
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
    ) -> Result<Elicited, ToolError> {
        let answers = self.inquire([("form", Inquiry::form(message, schema))]).await?;
        Ok(answers.first().map_or(Elicited::Cancelled, Elicited::from))
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

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inquiries")
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
        let cx = Context::new(Session::default(), ToolName::from_static("t"), CallId::next());
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
                Elicited::Accepted(name.as_object().unwrap().clone()),
            ),
            (json!({ "action": "decline", "content": name }), Elicited::Declined),
            (json!({ "action": "cancel" }), Elicited::Cancelled),
            (json!({ "content": name }), Elicited::Cancelled),
            (json!(5), Elicited::Cancelled),
        ] {
            assert_eq!(Elicited::from(&answer), expected, "{answer}");
        }
    }
}
