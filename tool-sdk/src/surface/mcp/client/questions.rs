//! What a server asks while one of its tools runs, and who answers.
//!
//! Nothing is answered unless the host said so for this server. A form goes to whoever called
//! the tool, see [`Session::inquire`](crate::Session::inquire); words of a model too, after
//! somebody or a rule let them; folders are those that the host named, for whoever calls.
//!
//! **Invariant:** a question that could belong to two callers is answered by neither.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Url;
use serde_json::{Map, Value, json};

use super::form::Form;
use super::remote::RemoteError;
use super::suspicion;
use crate::context::{Context, Elicited, Inquiry, InquiryKind};

/// The permission to let a server have words of a model.
pub(super) const SAMPLING: &str = "mcp_sampling";

/// How many questions one call may ask.
const MOST_QUESTIONS: usize = 16;

/// The most words that a server gets of a model, in tokens.
const MOST_TOKENS: u64 = 16 << 10;

/// How much of a prompt is shown to whoever is asked.
const SHOWN: usize = 400;

/// What of a request for words of a model counts; its context and its tools do not.
const COUNTS: &[&str] = &["messages", "systemPrompt", "temperature", "stopSequences"];

/// Which questions of a server are answered: none, unless said.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{Launch, Questions, Upstream};
///
/// let wizard = Upstream::new("wizard", Launch::new("wizard-server", ["--stdio"]))?
///     .questions(Questions::none().forms().roots(["/work/shelf"]));
/// # Ok::<(), tool_sdk::mcp::InvalidUpstream>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Questions {
    pub(super) forms: bool,
    pub(super) samples: bool,
    pub(super) roots: Option<Vec<PathBuf>>,
}

impl Questions {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    /// Forms, which whoever called the tool fills in. One that asks for a secret is not shown.
    pub fn forms(mut self) -> Self {
        self.forms = true;
        self
    }

    /// Words of the model of whoever called the tool. Each time rules, approvals or somebody
    /// say under the permission `mcp_sampling` whether the server gets them.
    pub fn samples(mut self) -> Self {
        self.samples = true;
        self
    }

    /// Which folders there are to work in: these.
    pub fn roots<P: Into<PathBuf>>(mut self, roots: impl IntoIterator<Item = P>) -> Self {
        self.roots.get_or_insert_default().extend(roots.into_iter().map(Into::into));
        self
    }
}

impl Questions {
    /// The folders that a server is told of, in the words of the protocol.
    pub(super) fn folders(&self) -> Option<Value> {
        let uris = self.roots.as_ref()?.iter().filter_map(|root| Url::from_file_path(root).ok());
        let roots: Vec<Value> = uris.map(|uri| json!({ "uri": uri.as_str() })).collect();
        Some(json!({ "roots": roots }))
    }
}

/// Answers what a server asks while one call runs.
///
/// Cheap to clone; clones answer for the same call.
#[derive(Clone)]
pub struct Answers(Arc<Inner>);

struct Inner {
    server: String,
    tool: String,
    questions: Questions,
    cx: Context,
    asked: AtomicUsize,
    open: AtomicUsize,
    /// One question at a time is put to a person.
    turn: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answers").field(&self.0.questions).finish()
    }
}

/// What a server is told whose question is not answered.
pub(super) fn not_allowed() -> RemoteError {
    RemoteError::protocol(
        "the server wants to ask something before it goes on, which is not allowed",
    )
}

/// A question that waits for its answer.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Answers {
    pub(super) fn new(server: &str, tool: &str, questions: Questions, cx: Context) -> Self {
        Self(Arc::new(Inner {
            server: server.to_owned(),
            tool: tool.to_owned(),
            questions,
            cx,
            asked: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    /// Answers a question of the server, both in the words of the protocol.
    ///
    /// # Errors
    ///
    /// Fails when questions of this kind are not answered.
    pub async fn answer(&self, method: &str, params: Value) -> Result<Value, RemoteError> {
        let Inner { questions, asked, open, turn, .. } = &*self.0;
        if asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS {
            return Err(RemoteError::protocol("the server asks too much"));
        }
        open.fetch_add(1, Ordering::Relaxed);
        let _open = Open(open);
        let _turn = turn.lock().await;
        let answer = match method {
            "elicitation/create" if questions.forms => Some(self.form(&params).await),
            "sampling/createMessage" if questions.samples => Some(self.words(params).await?),
            "roots/list" => questions.folders(),
            _ => None,
        };
        answer.ok_or_else(not_allowed)
    }

    /// Whether somebody thinks about a question.
    pub(super) fn is_open(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > 0
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both are answered by the same caller.
    pub(super) fn has_caller_of(&self, other: &Self) -> bool {
        self.0.cx.session().is_same(other.0.cx.session())
    }

    async fn form(&self, params: &Value) -> Value {
        let Inner { server, tool, cx, .. } = &*self.0;
        let cancelled = json!({ "action": "cancel" });
        if !cx.session().can_inquire(InquiryKind::Form) {
            return cancelled;
        }
        let form = match Form::of(params) {
            Ok(form) => form,
            Err(why) => {
                tracing::warn!(%server, why, "a form of a server was not shown");
                return json!({ "action": "decline" });
            }
        };
        let message = format!(
            "The server `{server}` asks this while its tool `{tool}` runs. What you answer goes \
             to that server, so no passwords and no keys.\n\n{}",
            form.message
        );
        let inquiry = Inquiry::form(message, form.schema.clone());
        let answers = cx.inquire([("form", inquiry)]).await.unwrap_or_default();
        match answers.first().map_or(Elicited::Cancelled, Elicited::from) {
            Elicited::Accepted(content) => match form.filled_in(content) {
                Ok(content) => json!({ "action": "accept", "content": content }),
                Err(why) => {
                    tracing::warn!(%server, why, "an answer was not sent to a server");
                    cancelled
                }
            },
            Elicited::Declined => json!({ "action": "decline" }),
            Elicited::Cancelled => cancelled,
        }
    }

    async fn words(&self, params: Value) -> Result<Value, RemoteError> {
        let Inner { server, cx, .. } = &*self.0;
        let refused = || RemoteError::protocol("the server may not have words of a model");
        if !cx.session().can_inquire(InquiryKind::Sample) {
            return Err(refused());
        }
        let tokens = params["maxTokens"].as_u64().unwrap_or(MOST_TOKENS).min(MOST_TOKENS);
        let mut wanted: Map<String, Value> = match params {
            Value::Object(members) => members,
            _ => return Err(refused()),
        };
        wanted.retain(|key, _| COUNTS.contains(&key.as_str()));
        let shown: String = Value::from(wanted.clone()).to_string().chars().take(SHOWN).collect();
        if !cx.ask(SAMPLING, format!("{server}/{}", suspicion::readable(&shown))).await {
            return Err(refused());
        }
        wanted.insert("maxTokens".to_owned(), tokens.into());
        let inquiry = Inquiry::conversation(wanted.into());
        let answers = cx.inquire([("words", inquiry)]).await;
        let answers = answers.map_err(|error| refused().because(error))?;
        answers.into_iter().next().ok_or_else(refused)
    }
}
