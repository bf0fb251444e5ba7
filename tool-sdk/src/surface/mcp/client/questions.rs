//! Requests that a server sends while one of its tools runs: elicitation, sampling and roots.
//!
//! A request is answered only if the host enabled its kind for this server. Elicitation goes to the
//! user who called the tool, see [`Session::inquire`](crate::Session::inquire); sampling as well,
//! after an approval or a rule allowed it; roots are those that the host configured.
//!
//! **Invariant:** a request that could belong to the calls of two users is refused.

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

/// The permission to let a server sample the model.
pub(super) const SAMPLING: &str = "mcp_sampling";

/// The most requests during one call.
const MOST_QUESTIONS: usize = 16;

/// The most tokens that a server may sample.
const MOST_TOKENS: u64 = 16 << 10;

/// How much of a prompt the approval shows, in characters.
const SHOWN: usize = 400;

/// The parameters of a sampling request that are used; its context and tools are not.
const COUNTS: &[&str] = &["messages", "systemPrompt", "temperature", "stopSequences"];

/// The client features that a server may use: which of its requests are answered. None by default.
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
    /// No features.
    pub fn none() -> Self {
        Self::default()
    }

    /// Enables elicitation: the user who called the tool fills in forms. A form that asks for a secret
    /// is not shown.
    pub fn forms(mut self) -> Self {
        self.forms = true;
        self
    }

    /// Enables sampling from the model of the session that called the tool. Each request needs the
    /// permission `mcp_sampling`, from a rule or an approval.
    pub fn samples(mut self) -> Self {
        self.samples = true;
        self
    }

    /// Enables roots: the server may ask for this list of folders.
    pub fn roots<P: Into<PathBuf>>(mut self, roots: impl IntoIterator<Item = P>) -> Self {
        self.roots.get_or_insert_default().extend(roots.into_iter().map(Into::into));
        self
    }
}

impl Questions {
    /// Returns the response to `roots/list`.
    pub(super) fn folders(&self) -> Option<Value> {
        let uris = self.roots.as_ref()?.iter().filter_map(|root| Url::from_file_path(root).ok());
        let roots: Vec<Value> = uris.map(|uri| json!({ "uri": uri.as_str() })).collect();
        Some(json!({ "roots": roots }))
    }
}

/// Answers the requests that a server sends during one call.
///
/// Cheap to clone; clones belong to the same call.
#[derive(Clone)]
pub struct Answers(Arc<Inner>);

struct Inner {
    server: String,
    tool: String,
    questions: Questions,
    cx: Context,
    asked: AtomicUsize,
    open: AtomicUsize,
    /// Held while a request is handled, so that the user sees one prompt at a time.
    turn: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answers").field(&self.0.questions).finish()
    }
}

/// The error for a request of a kind that is not enabled.
pub(super) fn not_allowed() -> RemoteError {
    RemoteError::protocol(
        "the server sent a request that is not enabled for it (elicitation, sampling or roots)",
    )
}

/// Counts a request as pending until it is dropped.
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

    /// Handles a request of the server; params and response are in the protocol's form.
    ///
    /// # Errors
    ///
    /// Fails when requests of this kind are not enabled.
    pub async fn answer(&self, method: &str, params: Value) -> Result<Value, RemoteError> {
        let Inner { questions, asked, open, turn, .. } = &*self.0;
        if asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS {
            return Err(RemoteError::protocol(format_args!(
                "the server sent more than {MOST_QUESTIONS} requests during one call"
            )));
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

    /// Whether a request waits for the user.
    pub(super) fn is_open(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > 0
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both calls were made by the same user.
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
                tracing::warn!(%server, why, "a server's elicitation form was not shown");
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
                    tracing::warn!(%server, why, "an answer to a server's elicitation was not sent");
                    cancelled
                }
            },
            Elicited::Declined => json!({ "action": "decline" }),
            Elicited::Cancelled => cancelled,
        }
    }

    async fn words(&self, params: Value) -> Result<Value, RemoteError> {
        let Inner { server, cx, .. } = &*self.0;
        let refused = || RemoteError::protocol("the server may not sample the model");
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
