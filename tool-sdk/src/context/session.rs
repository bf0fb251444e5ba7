//! What the host lends for a conversation: who it is for, and with what.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::session_states::SessionStates;
use super::sink::SessionListener;
use super::state::SessionServices;
use crate::call::LazyCancelToken;

/// A conversation: who asks, on whose behalf, and what the host lends.
///
/// Cheap to clone; clones share everything but what is set on them later. Set another id, user,
/// agent or project, and the clone is another session: what was approved, and what the guard
/// against loops has seen, stays with the first. So does it with two clones that are given the
/// same user each on its own, because nothing proves that they belong together. Make the session
/// of a user once, keep it, and clone that.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ClientKind, Session};
///
/// let session = Session::new("s1").with_user("ada").with_agent("librarian").with_client(ClientKind::Rest);
/// assert_eq!(session.user(), Some("ada"));
///
/// // The same session: what was approved for it holds for this call too.
/// let call = session.clone().with_user("ada").with_request("r7");
/// assert_eq!(call.request(), Some("r7"));
/// ```
#[derive(Clone, Default)]
pub struct Session(Arc<Inner>);

#[derive(Clone, Default)]
struct Inner {
    id: Arc<str>,
    agent: Option<String>,
    conversation: Option<String>,
    project: Option<String>,
    user: Option<String>,
    request: Option<String>,
    model: Option<String>,
    client: ClientKind,
    permissions: BTreeSet<String>,
    metadata: Map<String, Value>,
    messages: Arc<[ConversationMessage]>,
    services: SessionServices,
    listener: Option<Arc<dyn SessionListener>>,
    /// Made when somebody asks for it; shared by clones all the same.
    cancel: LazyCancelToken,
    states: Arc<SessionStates>,
    /// Whether others beside it speak to the same host, each for themselves.
    #[cfg(feature = "mcp")]
    is_shared: bool,
}

/// Where a call comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientKind {
    /// A host that embeds the tools.
    #[default]
    Embedded,
    /// An agent's loop.
    Agent,
    /// A client of the Model Context Protocol, by its kind.
    Mcp(String),
    /// A REST request.
    Rest,
    /// A plugin.
    Plugin,
    /// The command line.
    Cli,
}

impl fmt::Display for ClientKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
            Self::Agent => f.write_str("agent"),
            Self::Mcp(kind) => write!(f, "mcp:{kind}"),
            Self::Rest => f.write_str("rest"),
            Self::Plugin => f.write_str("plugin"),
            Self::Cli => f.write_str("cli"),
        }
    }
}

/// A message of the conversation; tools may read it and not change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a host writes messages as it has them")]
pub struct ConversationMessage {
    /// Who said it, such as `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: Value,
}

impl ConversationMessage {
    /// A message of plain text.
    #[must_use]
    pub fn text(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self { role: role.into(), content: Value::String(text.into()) }
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $field:ident, $with:ident, $(#[$more:meta])* whose approvals $whose:literal;)*) => {
        /// Who a session is for.
        impl Session {$(
            $(#[$doc])*
            #[must_use]
            pub fn $field(&self) -> Option<&str> {
                self.0.$field.as_deref()
            }

            #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
            $(#[$more])*
            #[must_use]
            pub fn $with(mut self, value: impl Into<String>) -> Self {
                let value = Some(value.into());
                if self.0.$field == value {
                    return self;
                }
                let inner = self.inner_mut();
                inner.$field = value;
                if $whose {
                    // What was approved for one of them was not approved for another.
                    inner.states = Arc::default();
                }
                self
            }
        )*}
    };
}

names! {
    /// The agent that calls.
    agent, with_agent,
    ///
    /// Another one has none of what was approved so far, and its calls repeat none, so it is
    /// set once, and the session cloned for each call: see [`Session`].
    whose approvals true;
    /// The conversation.
    conversation, with_conversation, whose approvals false;
    /// The project.
    project, with_project,
    ///
    /// Another one has none of what was approved so far, and its calls repeat none, so it is
    /// set once, and the session cloned for each call: see [`Session`].
    whose approvals true;
    /// The user on whose behalf the calls are made.
    user, with_user,
    ///
    /// Another one has none of what was approved so far, and its calls repeat none, so it is
    /// set once, and the session cloned for each call: see [`Session`].
    whose approvals true;
    /// The request that led to the calls.
    request, with_request, whose approvals false;
    /// The model that makes the calls.
    model, with_model, whose approvals false;
}

impl Session {
    /// A session with this id.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(Arc::new(Inner { id: id.into().into(), ..Inner::default() }))
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The session's id, for what outlives it.
    #[inline]
    pub(crate) fn shared_id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// The same for another conversation: nothing that was approved in this one holds there.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        if *self.0.id == *id {
            return self;
        }
        let inner = self.inner_mut();
        inner.id = id.into();
        inner.states = Arc::default();
        self
    }

    /// Says where the calls come from.
    #[must_use]
    pub fn with_client(mut self, client: ClientKind) -> Self {
        self.inner_mut().client = client;
        self
    }

    /// Where the calls come from.
    #[must_use]
    pub fn client(&self) -> &ClientKind {
        &self.0.client
    }

    /// Grants the caller a permission, such as `notes:write`.
    #[must_use]
    pub fn with_permission(mut self, permission: impl Into<String>) -> Self {
        self.inner_mut().permissions.insert(permission.into());
        self
    }

    /// What the caller may do.
    #[must_use]
    pub fn permissions(&self) -> &BTreeSet<String> {
        &self.0.permissions
    }

    /// Adds a fact of the host's own, for tools that know of it.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.inner_mut().metadata.insert(key.into(), value.into());
        self
    }

    /// The facts that the host added.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.0.metadata
    }

    /// Shows tools the conversation so far.
    #[must_use]
    pub fn with_messages(mut self, messages: impl Into<Arc<[ConversationMessage]>>) -> Self {
        self.inner_mut().messages = messages.into();
        self
    }

    /// The conversation so far.
    #[must_use]
    pub fn messages(&self) -> &[ConversationMessage] {
        &self.0.messages
    }

    /// Lends tools a service, found by its type as [`State<T>`](crate::State).
    #[must_use]
    pub fn with_service<T: Send + Sync + 'static>(self, service: T) -> Self {
        self.with_shared_service(Arc::new(service))
    }

    /// Lends tools a service that the host keeps using.
    #[must_use]
    pub fn with_shared_service<T: Send + Sync + 'static>(mut self, service: Arc<T>) -> Self {
        self.inner_mut().services.insert(service);
        self
    }

    #[inline]
    pub(crate) fn services(&self) -> &SessionServices {
        &self.0.services
    }

    /// Lets somebody hear what tools say while they run.
    #[cfg(feature = "mcp")]
    pub(crate) fn with_listener(mut self, listener: Arc<dyn SessionListener>) -> Self {
        self.inner_mut().listener = Some(listener);
        self
    }

    #[inline]
    pub(crate) fn listener(&self) -> Option<&dyn SessionListener> {
        self.0.listener.as_deref()
    }

    /// The session of somebody beside whom others speak to the same host.
    #[cfg(feature = "mcp")]
    pub(crate) fn with_shared_server(mut self) -> Self {
        self.inner_mut().is_shared = true;
        self
    }

    /// On whose behalf somebody sees something for the first time: the user, nobody in
    /// particular of many, or, for `None`, the host itself.
    #[cfg(feature = "mcp")]
    pub(crate) fn user_key(&self) -> Option<&str> {
        self.user().or(self.0.is_shared.then_some(""))
    }

    /// Whether both are one session: clones, on behalf of the same user and agent.
    pub(crate) fn is_same_session(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.states, &other.0.states)
    }

    /// What a pipeline keeps for the session and all its clones, made at first use.
    #[inline]
    pub(crate) fn pipeline_state<T: Any + Default + Send + Sync>(&self, pipeline: usize) -> &T {
        self.0.states.get_or_insert(pipeline)
    }

    /// Lets `token` cancel every call of the session.
    #[must_use]
    pub fn with_cancel(mut self, token: CancellationToken) -> Self {
        self.inner_mut().cancel = token.into();
        self
    }

    /// Cancels every call of the session when triggered.
    #[must_use]
    pub fn cancel_token(&self) -> &CancellationToken {
        self.0.cancel.token()
    }

    /// Whether every call of the session is cancelled.
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    fn inner_mut(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.0.id)
            .field("agent", &self.0.agent)
            .field("conversation", &self.0.conversation)
            .field("project", &self.0.project)
            .field("user", &self.0.user)
            .field("request", &self.0.request)
            .field("model", &self.0.model)
            .field("client", &self.0.client)
            .finish_non_exhaustive()
    }
}
