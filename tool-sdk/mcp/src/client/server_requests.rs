//! Requests that a server sends while one of its tools runs: elicitation, sampling and roots.
//!
//! A request is answered only if the host enabled its kind for this server. Elicitation goes to the
//! user who called the tool, see [`Session::inquire`](tool_sdk_core::Session::inquire); sampling as well,
//! after an approval or a rule allowed it; roots are those that the host configured.
//!
//! **Invariant:** a request that could belong to the calls of two users is refused.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Url;
use serde_json::{Map, Value, json};
use tool_sdk_core::{Context, ElicitationOutcome, Inquiry, InquiryKind};

use super::description_lint;
use super::elicitation::ElicitationForm;
use super::elicitation_url::ElicitationUrl;
use super::remote::RemoteError;

/// The permission to let a server sample the model.
pub(super) const SAMPLING_PERMISSION: &str = "mcp_sampling";

/// The most requests during one call.
const MAX_REQUESTS: usize = 16;

/// The most tokens that a server may sample.
const MAX_TOKENS: u64 = 16 << 10;

/// How much of a prompt the approval shows, in characters.
const MAX_SHOWN_CHARS: usize = 400;

/// The parameters of a sampling request that are used; its context and tools are not.
const SAMPLING_PARAMS: &[&str] = &["messages", "systemPrompt", "temperature", "stopSequences"];

/// The client features that a server may use: which of its requests are answered. None by default.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{ServerCommand, ClientFeatures, ServerConfig};
///
/// let wizard = ServerConfig::new("wizard", ServerCommand::new("wizard-server", ["--stdio"]))?
///     .client_features(ClientFeatures::none().elicitation().roots(["/work/shelf"]));
/// # Ok::<(), tool_sdk::mcp::InvalidServerConfig>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ClientFeatures {
    pub(super) elicitation: bool,
    pub(super) urls: bool,
    pub(super) sampling: bool,
    pub(super) roots: Option<Vec<PathBuf>>,
}

impl ClientFeatures {
    /// No features.
    pub fn none() -> Self {
        Self::default()
    }

    /// Enables elicitation: the user who called the tool fills in forms. A form that asks for a secret
    /// is not shown.
    pub fn elicitation(mut self) -> Self {
        self.elicitation = true;
        self
    }

    /// Enables elicitation by URL: the user who called the tool is shown an address, with its host, and
    /// decides whether to open it. Nothing is opened by the client. Addresses that are not encrypted, or
    /// that hide something, are not shown.
    pub fn urls(mut self) -> Self {
        self.urls = true;
        self
    }

    /// Enables sampling from the model of the session that called the tool. Each request needs the
    /// permission `mcp_sampling`, from a rule or an approval.
    pub fn sampling(mut self) -> Self {
        self.sampling = true;
        self
    }

    /// Enables roots: the server may ask for this list of folders.
    pub fn roots<P: Into<PathBuf>>(mut self, roots: impl IntoIterator<Item = P>) -> Self {
        self.roots.get_or_insert_default().extend(roots.into_iter().map(Into::into));
        self
    }
}

impl ClientFeatures {
    /// Returns the response to `roots/list`.
    pub(super) fn list_roots(&self) -> Option<Value> {
        let uris = self.roots.as_ref()?.iter().filter_map(|root| Url::from_file_path(root).ok());
        let roots: Vec<Value> = uris.map(|uri| json!({ "uri": uri.as_str() })).collect();
        Some(json!({ "roots": roots }))
    }
}

/// Answers the requests that a server sends during one call.
///
/// Cheap to clone; clones belong to the same call.
#[derive(Clone)]
pub struct ServerRequestHandler(Arc<Inner>);

struct Inner {
    server: String,
    tool: String,
    features: ClientFeatures,
    cx: Context,
    request_count: AtomicUsize,
    pending: AtomicUsize,
    /// Held while a request is handled, so that the user sees one prompt at a time.
    prompt_lock: tokio::sync::Mutex<()>,
}

impl fmt::Debug for ServerRequestHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerRequestHandler").field(&self.0.features).finish()
    }
}

/// The error for a request of a kind that is not enabled: which kind it is, and what enables it.
pub(super) fn not_enabled_error(method: &str, params: &Value) -> RemoteError {
    let (kind, question) = match method {
        "elicitation/create" if params["mode"] == "url" => ("elicitation by URL", Some("urls")),
        "elicitation/create" => ("elicitation by form", Some("forms")),
        "roots/list" => ("listing the roots", Some("roots")),
        "sampling/createMessage" => ("sampling", None),
        _ => ("this kind of request", None),
    };
    let remedy = match question {
        Some(question) => format!(
            "`questions = [\"{question}\"]` below `[mcp.servers.NAME]` in the configuration enables it"
        ),
        None => "no setting enables it".to_owned(),
    };
    RemoteError::protocol(format_args!("{kind} is not enabled for this server; {remedy}"))
}

/// Counts a request as pending until it is dropped.
struct PendingRequest<'a>(&'a AtomicUsize);

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerRequestHandler {
    pub(super) fn new(server: &str, tool: &str, features: ClientFeatures, cx: Context) -> Self {
        Self(Arc::new(Inner {
            server: server.to_owned(),
            tool: tool.to_owned(),
            features,
            cx,
            request_count: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            prompt_lock: tokio::sync::Mutex::default(),
        }))
    }

    /// Handles a request of the server; params and response are in the protocol's form.
    ///
    /// # Errors
    ///
    /// Fails when requests of this kind are not enabled.
    pub async fn handle_request(&self, method: &str, params: Value) -> Result<Value, RemoteError> {
        let Inner { features, request_count, pending: open, prompt_lock, .. } = &*self.0;
        if request_count.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            return Err(RemoteError::protocol(format_args!(
                "the server sent more than {MAX_REQUESTS} requests during one call"
            )));
        }
        open.fetch_add(1, Ordering::Relaxed);
        let _open = PendingRequest(open);
        let _turn = prompt_lock.lock().await;
        let not_enabled = not_enabled_error(method, &params);
        let answer = match method {
            "elicitation/create" if params["mode"] == "url" => match features.urls {
                true => Some(self.handle_url(&params).await),
                false => None,
            },
            "elicitation/create" if features.elicitation => {
                Some(self.handle_elicitation(&params).await)
            }
            "sampling/createMessage" if features.sampling => {
                Some(self.handle_sampling(params).await?)
            }
            "roots/list" => features.list_roots(),
            _ => None,
        };
        answer.ok_or(not_enabled)
    }

    /// Whether a request waits for the user.
    pub(super) fn is_waiting_for_user(&self) -> bool {
        self.0.pending.load(Ordering::Relaxed) > 0
    }

    pub(super) fn is_same_call(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both calls were made by the same user.
    pub(super) fn has_same_caller(&self, other: &Self) -> bool {
        self.0.cx.session().is_same_session(other.0.cx.session())
    }

    async fn handle_elicitation(&self, params: &Value) -> Value {
        let Inner { server, tool, cx, .. } = &*self.0;
        let cancelled = json!({ "action": "cancel" });
        if !cx.session().can_inquire(InquiryKind::Form) {
            return cancelled;
        }
        let form = match ElicitationForm::parse(params) {
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
        match answers.first().map_or(ElicitationOutcome::Cancelled, ElicitationOutcome::from) {
            ElicitationOutcome::Accepted(content) => match form.accept_answer(content) {
                Ok(content) => json!({ "action": "accept", "content": content }),
                Err(why) => {
                    tracing::warn!(%server, why, "an answer to a server's elicitation was not sent");
                    cancelled
                }
            },
            ElicitationOutcome::Declined => json!({ "action": "decline" }),
            ElicitationOutcome::Cancelled => cancelled,
        }
    }

    /// Shows the user an address; the answer has no content.
    async fn handle_url(&self, params: &Value) -> Value {
        let Inner { server, tool, cx, .. } = &*self.0;
        if !cx.session().can_inquire(InquiryKind::Url) {
            return json!({ "action": "cancel" });
        }
        let asked = match ElicitationUrl::parse(params) {
            Ok(asked) => asked,
            Err(why) => {
                tracing::warn!(%server, why, "a server's address was not shown");
                return json!({ "action": "decline" });
            }
        };
        let warnings: String =
            asked.warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        let message = format!(
            "The server `{server}` asks you to open an address while its tool `{tool}` runs. What \
             you type there goes to the host of the address.\n\nhost: {}{warnings}\n\n{}",
            asked.host, asked.message
        );
        let answers = cx.inquire([("url", Inquiry::url(message, asked.url))]).await;
        let answers = answers.unwrap_or_default();
        match answers.first().map_or(ElicitationOutcome::Cancelled, ElicitationOutcome::from) {
            ElicitationOutcome::Accepted(_) => json!({ "action": "accept" }),
            ElicitationOutcome::Declined => json!({ "action": "decline" }),
            ElicitationOutcome::Cancelled => json!({ "action": "cancel" }),
        }
    }

    async fn handle_sampling(&self, params: Value) -> Result<Value, RemoteError> {
        let Inner { server, cx, .. } = &*self.0;
        let refused = || RemoteError::protocol("the server may not sample the model");
        if !cx.session().can_inquire(InquiryKind::Sample) {
            return Err(refused());
        }
        let tokens = params["maxTokens"].as_u64().unwrap_or(MAX_TOKENS).min(MAX_TOKENS);
        let mut wanted: Map<String, Value> = match params {
            Value::Object(members) => members,
            _ => return Err(refused()),
        };
        wanted.retain(|key, _| SAMPLING_PARAMS.contains(&key.as_str()));
        let shown: String =
            Value::from(wanted.clone()).to_string().chars().take(MAX_SHOWN_CHARS).collect();
        if !cx
            .request_permission(
                SAMPLING_PERMISSION,
                format!("{server}/{}", description_lint::clean_text(&shown)),
            )
            .await
        {
            return Err(refused());
        }
        wanted.insert("maxTokens".to_owned(), tokens.into());
        let inquiry = Inquiry::conversation(wanted.into());
        let answers = cx.inquire([("words", inquiry)]).await;
        let answers = answers.map_err(|error| refused().with_source(error))?;
        answers.into_iter().next().ok_or_else(refused)
    }
}
