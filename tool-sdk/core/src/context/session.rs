//! A session: who makes the calls of a conversation, and what the host provides for them.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::session_states::SessionStates;
use super::sink::SessionListener;
use super::state::SessionServices;
use crate::call::LazyCancelToken;

/// The number under which a session keeps what belongs to no pipeline.
const EXTENSIONS: usize = usize::MAX;

/// A conversation: who calls, on whose behalf, and what the host provides.
///
/// Cheap to clone; clones share everything except values that are set on them later. A clone with
/// another id, user, agent or project is another session: it starts without the grants and the
/// loop-guard history of the first. Two clones on which the same user is set separately are also
/// two sessions, because nothing proves that they belong together. Create the session
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
    ids: Arc<SessionIds>,
    model: Option<String>,
    client: ClientKind,
    permissions: BTreeSet<String>,
    metadata: Map<String, Value>,
    messages: Arc<[ConversationMessage]>,
    services: SessionServices,
    listener: Option<Arc<dyn SessionListener>>,
    /// Created on first use; all clones share it.
    cancel: LazyCancelToken,
    states: Arc<SessionStates>,
    /// Whether several clients share the server.
    is_shared: bool,
    /// Whether the calls belong to no conversation.
    has_stateless_calls: bool,
    is_ephemeral: bool,
    /// Whether a subscriber that loses no event makes the calls.
    is_event_reader: bool,
}

/// For whom a session makes calls; shared by the session's events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionIds {
    /// The agent that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The user on whose behalf the calls are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The request that led to the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// The kind of client that makes the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientKind {
    /// A host that embeds the tools.
    #[default]
    Embedded,
    /// An agent's loop.
    Agent,
    /// A client of the Model Context Protocol, with its name.
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

/// A message of the conversation; tools can read it and not change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct messages")]
pub struct ConversationMessage {
    /// The author, such as `user` or `assistant`.
    pub role: String,
    /// The content.
    pub content: Value,
}

impl ConversationMessage {
    /// Creates a message of plain text.
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
                self.0.ids.$field.as_deref()
            }

            #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
            $(#[$more])*
            #[must_use]
            pub fn $with(mut self, value: impl Into<String>) -> Self {
                let value = Some(value.into());
                if self.0.ids.$field == value {
                    return self;
                }
                let inner = self.inner_mut();
                Arc::make_mut(&mut inner.ids).$field = value;
                if $whose {
                    // Grants and the loop-guard history belong to the old value only.
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
    /// A session with another agent starts without grants and loop-guard history, so set the
    /// agent once and clone the session for each call; see [`Session`].
    whose approvals true;
    /// The conversation.
    conversation, with_conversation, whose approvals false;
    /// The project.
    project, with_project,
    ///
    /// A session with another project starts without grants and loop-guard history, so set the
    /// project once and clone the session for each call; see [`Session`].
    whose approvals true;
    /// The user on whose behalf the calls are made.
    user, with_user,
    ///
    /// A session with another user starts without grants and loop-guard history, so set the user
    /// once and clone the session for each call; see [`Session`].
    whose approvals true;
    /// The request that led to the calls.
    request, with_request, whose approvals false;
}

impl Session {
    /// Creates a session with this id.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(Arc::new(Inner { id: id.into().into(), ..Inner::default() }))
    }

    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the session's id, for values that outlive the session.
    #[inline]
    pub(crate) fn shared_id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// Returns for whom the session makes calls, for values that outlive the session.
    #[inline]
    pub(crate) fn shared_ids(&self) -> &Arc<SessionIds> {
        &self.0.ids
    }

    /// The model that makes the calls.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    /// Sets [`model`](Self::model).
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.inner_mut().model = Some(model.into());
        self
    }

    /// Returns the session of another conversation: no grant of this one applies there.
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

    /// Sets the kind of client that makes the calls.
    #[must_use]
    pub fn with_client(mut self, client: ClientKind) -> Self {
        self.inner_mut().client = client;
        self
    }

    /// Returns the kind of client that makes the calls.
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

    /// Returns the caller's permissions.
    #[must_use]
    pub fn permissions(&self) -> &BTreeSet<String> {
        &self.0.permissions
    }

    /// Adds metadata of the host, for tools that know it.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.inner_mut().metadata.insert(key.into(), value.into());
        self
    }

    /// Returns the host's metadata.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.0.metadata
    }

    /// Sets the conversation so far, for tools to read.
    #[must_use]
    pub fn with_messages(mut self, messages: impl Into<Arc<[ConversationMessage]>>) -> Self {
        self.inner_mut().messages = messages.into();
        self
    }

    /// Returns the conversation so far.
    #[must_use]
    pub fn messages(&self) -> &[ConversationMessage] {
        &self.0.messages
    }

    /// Adds a service for tools, found by its type as [`State<T>`](crate::State).
    #[must_use]
    pub fn with_service<T: Send + Sync + 'static>(self, service: T) -> Self {
        self.with_shared_service(Arc::new(service))
    }

    /// Adds a service that the host keeps using.
    #[must_use]
    pub fn with_shared_service<T: Send + Sync + 'static>(mut self, service: Arc<T>) -> Self {
        self.inner_mut().services.insert(service);
        self
    }

    /// Returns the service of type `T` that the host attached.
    ///
    /// # Examples
    ///
    /// ```
    /// let session = tool_sdk::Session::new("s1").with_service(7_u32);
    /// assert_eq!(session.service::<u32>().as_deref(), Some(&7));
    /// assert_eq!(session.service::<u64>(), None);
    /// ```
    #[must_use]
    pub fn service<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.services().get()
    }

    /// Returns the service of type `T` that the host attached; else one of the session's own, which
    /// is created on first use and shared by all clones of the session.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use tool_sdk::Session;
    ///
    /// let session = Session::new("s1");
    /// session.extension::<Arc<Mutex<u32>>>().lock().unwrap().add_assign(2);
    /// assert_eq!(*session.clone().extension::<Arc<Mutex<u32>>>().lock().unwrap(), 2);
    ///
    /// let lent = Session::new("s2").with_service(Arc::new(Mutex::new(7_u32)));
    /// assert_eq!(*lent.extension::<Arc<Mutex<u32>>>().lock().unwrap(), 7);
    /// # use std::ops::AddAssign;
    /// ```
    #[must_use]
    pub fn extension<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        match self.services().get::<T>() {
            Some(attached) => (*attached).clone(),
            None => self.own_extension(),
        }
    }

    /// Returns a value of the session's own, created on first use and shared by all clones.
    pub(crate) fn own_extension<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        self.pipeline_state::<T>(EXTENSIONS).clone()
    }

    #[inline]
    pub(crate) fn services(&self) -> &SessionServices {
        &self.0.services
    }

    /// Sets the listener for the signals of running tools.
    #[doc(hidden)]
    pub fn with_listener(mut self, listener: Arc<dyn SessionListener>) -> Self {
        self.inner_mut().listener = Some(listener);
        self
    }

    #[inline]
    pub(crate) fn listener(&self) -> Option<&dyn SessionListener> {
        self.0.listener.as_deref()
    }

    /// Marks the server as shared with other clients.
    #[doc(hidden)]
    pub fn with_shared_server(mut self) -> Self {
        self.inner_mut().is_shared = true;
        self
    }

    /// Declares that the calls of this session belong to no conversation: a protocol names none, so
    /// that requests of several clients, which only share their principal, arrive as one session.
    ///
    /// A [`LoopGuard`](crate::LoopGuard) then takes identical calls for a loop only when there are
    /// more than [60 a minute](crate::LoopGuardSettings::stateless_calls_per_minute).
    ///
    /// # Examples
    ///
    /// ```
    /// let session = tool_sdk::Session::new("requests-of-ada").with_user("ada").with_stateless_calls();
    /// assert!(session.has_stateless_calls());
    /// ```
    #[must_use]
    pub fn with_stateless_calls(mut self) -> Self {
        self.inner_mut().has_stateless_calls = true;
        self
    }

    /// Returns whether the calls of this session [belong to no
    /// conversation](Self::with_stateless_calls).
    #[must_use]
    pub fn has_stateless_calls(&self) -> bool {
        self.0.has_stateless_calls
    }

    /// Declares that this session ends with its request, so that no later call can use what tools keep
    /// for the session.
    ///
    /// [No process](crate::ToolSettings::background_processes) runs on after its call then, and
    /// [plans](crate::PlanStoreHandle::update) cannot be changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Session, ToolSettings};
    ///
    /// let session = Session::new("once-1").with_ephemeral_state();
    /// assert!(session.is_ephemeral());
    /// assert!(!ToolSettings::from_session(&session).background_processes);
    /// ```
    #[must_use]
    pub fn with_ephemeral_state(mut self) -> Self {
        self.inner_mut().is_ephemeral = true;
        self
    }

    /// Returns whether this session [ends with its request](Self::with_ephemeral_state).
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.0.is_ephemeral
    }

    /// Declares that a [lossless subscriber](crate::Pipeline::subscribe_lossless) makes the calls of
    /// this session, so that they do not wait until that subscriber has read.
    #[must_use]
    pub fn with_event_reader(mut self) -> Self {
        self.inner_mut().is_event_reader = true;
        self
    }

    #[inline]
    pub(crate) fn is_event_reader(&self) -> bool {
        self.0.is_event_reader
    }

    /// Returns the session with another agent or none, for decisions about the same calls.
    pub(crate) fn for_agent(mut self, agent: Option<String>) -> Self {
        Arc::make_mut(&mut self.inner_mut().ids).agent = agent;
        self
    }

    /// Returns whether several clients share the server.
    #[doc(hidden)]
    pub fn has_shared_server(&self) -> bool {
        self.0.is_shared
    }

    /// Returns the key of the user, for state kept per user: the user's name, the empty string
    /// for the anonymous users of a shared server, and `None` for the host itself.
    #[doc(hidden)]
    pub fn user_key(&self) -> Option<&str> {
        self.user().or(self.0.is_shared.then_some(""))
    }

    /// Returns whether both are clones of one session, for the same user and agent.
    #[doc(hidden)]
    pub fn is_same_session(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.states, &other.0.states)
    }

    /// Returns a handle that does not keep the session alive.
    pub(crate) fn handle(&self) -> SessionHandle {
        SessionHandle(Arc::downgrade(&self.0.states))
    }

    /// Returns the state that a pipeline keeps for the session and its clones, created on first
    /// use.
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

    /// Returns the token that cancels every call of the session.
    #[must_use]
    pub fn cancel_token(&self) -> &CancellationToken {
        self.0.cancel.token()
    }

    /// Returns whether every call of the session is cancelled.
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    fn inner_mut(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }
}

/// A session that may have ended.
#[derive(Clone)]
pub(crate) struct SessionHandle(Weak<SessionStates>);

impl PartialEq for SessionHandle {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for SessionHandle {}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").field("is_alive", &self.is_alive()).finish()
    }
}

impl SessionHandle {
    /// Whether a clone of the session still exists.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Whether the handle is of this session or a clone.
    pub(crate) fn is_of(&self, session: &Session) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&session.0.states))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.0.id)
            .field("agent", &self.0.ids.agent)
            .field("conversation", &self.0.ids.conversation)
            .field("project", &self.0.ids.project)
            .field("user", &self.0.ids.user)
            .field("request", &self.0.ids.request)
            .field("model", &self.0.model)
            .field("client", &self.0.client)
            .finish_non_exhaustive()
    }
}
