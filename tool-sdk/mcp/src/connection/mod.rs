//! One connection to a client: its identity, its capabilities and its subscriptions.

// Log messages are deprecated in the protocol, but current clients still read them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

mod handler;
mod server_info;

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rmcp::model::{
    ClientCapabilities, ErrorData, Extensions, InitializeRequestParams, JsonObject,
    PromptsCapability, ResourceUpdatedNotificationParam, ResourcesCapability, ServerCapabilities,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_sdk_core::{ClientKind, GrantScope, Principal, Session, Subscription, ToolsetView};

use super::Server;
use super::fast_path::{FastPathGate, HandedOffCall, LogThreshold, SessionResponder, SpawnedCall};
use super::http::{HttpSessions, PrincipalKey, StatelessSessions};
use super::input::InputCapabilities;
use super::legacy_client::{LegacyClient, OriginatingRequest};
use super::listing::ProtocolEra;
use super::message::RawArguments;
use super::resource_adapter::ResourceSubscriptions;
use super::result::ContentSupport;
use super::ui::UiSupport;

type Result<T> = std::result::Result<T, ErrorData>;

/// One client and its session.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    session: Session,
    /// The principal that opened the connection, and its session.
    principal: OnceLock<(PrincipalKey, Session)>,
    /// The sessions for stateless requests over HTTP.
    stateless_sessions: Option<Arc<StatelessSessions>>,
    /// The HTTP sessions, including this one.
    sessions: Option<Arc<HttpSessions>>,
    /// The lowest log level that a legacy client wants.
    log_threshold: Arc<LogThreshold>,
    /// Whether a legacy client has sent `notifications/initialized`.
    is_initialized: AtomicBool,
    /// The resource subscriptions of a legacy client.
    subscriptions: Arc<ResourceSubscriptions>,
    /// The fast path in front of this connection, if it is used.
    fast_path: Option<Arc<FastPathGate>>,
    /// Triggered when the client has closed its side.
    disconnected: CancellationToken,
    /// Triggered when the grace period for running calls is over.
    pub(super) grace_expired: CancellationToken,
    /// Triggered when the connection is closed.
    closed: CancellationToken,
    _guard: DropGuard,
}

impl Connection {
    pub(super) fn new(server: Arc<Server>) -> io::Result<Self> {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits)?;
        let id = format!("mcp-{:016x}", u64::from_be_bytes(bits));
        let gone = CancellationToken::new();
        Ok(Self {
            session: server.connection_session(id),
            principal: OnceLock::new(),
            stateless_sessions: None,
            sessions: None,
            server,
            log_threshold: Arc::default(),
            fast_path: None,
            disconnected: CancellationToken::new(),
            grace_expired: CancellationToken::new(),
            is_initialized: AtomicBool::new(false),
            subscriptions: Arc::default(),
            _guard: gone.clone().drop_guard(),
            closed: gone,
        })
    }

    /// Connects the fast path, which is enabled once the session is initialized.
    pub(super) fn with_fast_path(mut self, opened: &Arc<FastPathGate>) -> Self {
        self.fast_path = self.server.uses_fast_path.then(|| Arc::clone(opened));
        (self.log_threshold, self.disconnected, self.grace_expired) = opened.connection_state();
        self
    }

    fn legacy_client(&self, peer: &Peer<RoleServer>, can: InputCapabilities) -> LegacyClient {
        LegacyClient::new(peer.clone(), can, self.can_ask(can), self.disconnected.clone())
    }

    /// Uses the session of the principal for stateless requests, and the HTTP fast path for
    /// requests of a session.
    pub(super) fn with_http_sessions(
        mut self,
        lasting: Arc<StatelessSessions>,
        sessions: Arc<HttpSessions>,
    ) -> Self {
        self.stateless_sessions = Some(lasting);
        // Closing an HTTP session cancels only its own calls.
        let own = self.session.cancel_token().child_token();
        self.session = self.session.with_cancel(own);
        self.sessions = self.server.uses_fast_path.then_some(sessions);
        self
    }

    /// Returns the session for one request. A modern client sends its name with every request.
    pub(super) fn request_session(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let name = cx.client_info().map(|info| info.name).unwrap_or_default();
        Ok(with_client_name(self.principal_session(cx)?, &name))
    }

    /// Returns the session of the principal that opened the connection. Fails for every other
    /// principal.
    fn principal_session(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let who = request_principal(cx);
        let (owner, session) = self.principal.get_or_init(|| {
            let begin = || {
                let session = self.session.clone();
                who.as_ref().map_or(session.clone(), |who| who.apply_to(session))
            };
            let stands_alone =
                ProtocolEra::from_version(cx.protocol_version().as_ref()) == ProtocolEra::Modern;
            let session = match self.stateless_sessions.as_ref().filter(|_| stands_alone) {
                Some(lasting) => lasting.get_or_create(&who, Instant::now(), begin),
                None => begin(),
            };
            (who.clone(), session)
        });
        match *owner == who {
            true => Ok(session.clone()),
            false => {
                Err(ErrorData::invalid_request("this session belongs to another principal", None))
            }
        }
    }

    /// Returns true if the client's user approves calls: the host set no approver, and the client
    /// supports forms.
    pub(super) fn can_ask(&self, can: InputCapabilities) -> bool {
        let named =
            self.server.pipeline.has_approver() || self.session.session_approver().is_some();
        !named && self.server.asks_client && can.form
    }

    /// Returns the kinds of questions that the client can answer.
    pub(super) fn input_capabilities(&self, cx: &RequestContext<RoleServer>) -> InputCapabilities {
        InputCapabilities::from_client(cx.client_capabilities())
    }

    /// Returns which UI pages the client shows.
    pub(super) fn ui_support(&self, cx: &RequestContext<RoleServer>) -> UiSupport {
        let name = cx.client_info().map(|info| info.name).unwrap_or_default();
        detect_ui_support(&name, cx.client_capabilities().as_ref(), &cx.extensions)
    }

    /// Returns the session for a request of a legacy client, which is asked while its call runs.
    pub(super) fn legacy_session(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let cause = OriginatingRequest { request: cx.id.clone(), registered: None };
        let user = self.legacy_client(&cx.peer, self.input_capabilities(cx)).for_request(cause);
        Ok(user.attach_to(self.request_session(cx)?))
    }

    /// Returns the widest scope of an approval. Stateless requests over HTTP are only identified by
    /// their token; if that is the shared token, an approval holds for a single call.
    pub(super) fn approval_scope(&self, cx: &RequestContext<RoleServer>) -> GrantScope {
        let is_modern =
            ProtocolEra::from_version(cx.protocol_version().as_ref()) == ProtocolEra::Modern;
        let is_http = cx.extensions.get::<hyper::http::request::Parts>().is_some();
        match is_http && is_modern && request_principal(cx).is_none() {
            true => GrantScope::Once,
            false => GrantScope::Session,
        }
    }

    /// Returns the lowest log level that a legacy client wants.
    pub(super) fn min_log_level(&self) -> u8 {
        self.log_threshold.get()
    }

    fn toolset_view(&self, cx: &RequestContext<RoleServer>) -> Result<Arc<ToolsetView>> {
        Ok(self.server.pipeline.toolset().view_for(&self.principal_session(cx)?))
    }

    /// Enables the fast path for a legacy client. Over HTTP the session has no id yet, see
    /// [`Self::open_http_fast_path`].
    fn open_fast_path(
        &self,
        info: &InitializeRequestParams,
        blocks: ContentSupport,
        cx: &RequestContext<RoleServer>,
    ) {
        let Some(opened) = &self.fast_path else { return };
        let (user, session, ui) = self.describe_client(info, &cx.peer, &cx.extensions);
        opened.open_session(user.attach_to(session), ui, blocks);
    }

    /// Enables the fast path over HTTP, once the session has its id.
    fn open_http_fast_path(&self, cx: &NotificationContext<RoleServer>) {
        let (Some(sessions), Some(head)) = (&self.sessions, cx.extensions.get()) else { return };
        let Some(info) = cx.peer.peer_info() else { return };
        let (user, session, ui) = self.describe_client(&info, &cx.peer, &cx.extensions);
        let session = user.clone().attach_to(session);
        let (pipeline, listing) = (self.server.pipeline.clone(), self.server.listing.clone());
        let (level, user) =
            (Arc::clone(&self.log_threshold), Some(user).filter(LegacyClient::can_answer));
        let blocks = ContentSupport::from_version(Some(&info.protocol_version));
        sessions.set_responder(head, |open| SessionResponder {
            pipeline,
            listing,
            session,
            client: user,
            ui,
            content: blocks,
            log_threshold: level,
            in_flight: open,
        });
    }

    /// Returns what a legacy client said about itself in `initialize`.
    fn describe_client(
        &self,
        info: &InitializeRequestParams,
        peer: &Peer<RoleServer>,
        extensions: &Extensions,
    ) -> (LegacyClient, Session, UiSupport) {
        let can = InputCapabilities::from_client(Some(info.capabilities.clone()));
        let ui = detect_ui_support(&info.client_info.name, Some(&info.capabilities), extensions);
        let own = self.principal.get().map_or(&self.session, |(_, session)| session);
        (self.legacy_client(peer, can), with_client_name(own.clone(), &info.client_info.name), ui)
    }

    /// Returns true if the host reports changes of resources.
    fn has_resource_updates(&self) -> bool {
        self.server
            .resources
            .as_ref()
            .is_some_and(|resources| resources.subscribe_updates().is_some())
    }

    /// Notifies a legacy client when a resource that it subscribed to changes.
    fn forward_resource_updates(&self, cx: &NotificationContext<RoleServer>) {
        let updates =
            self.server.resources.as_ref().and_then(|resources| resources.subscribe_updates());
        let Some(mut updates) = updates else { return };
        let (watched, peer) = (Arc::clone(&self.subscriptions), cx.peer.clone());
        tokio::spawn(self.closed.clone().run_until_cancelled_owned(async move {
            while let Some(uri) = next_update(&mut updates).await {
                let update = ResourceUpdatedNotificationParam::new(uri.clone());
                if watched.contains(&uri) && peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        }));
    }

    /// Returns the announced capabilities, which are only those that the host provides.
    fn server_capabilities(&self, ui: UiSupport) -> ServerCapabilities {
        let can = ServerCapabilities::builder().enable_logging().enable_tools();
        let mut can = can.enable_tool_list_changed().build();
        let (resources, prompts) = (&self.server.resources, &self.server.prompts);
        if !self.server.pages.is_empty() && ui != UiSupport::TextOnly {
            can.resources = Some(ResourcesCapability::default());
            can.extensions = ui.server_extension();
        }
        if let Some(resources) = resources {
            let mut how = ResourcesCapability::default();
            how.subscribe = resources.subscribe_updates().map(|_| true);
            can.resources = Some(how);
        }
        if prompts.is_some() {
            can.prompts = Some(PromptsCapability::default());
        }
        if resources.is_some() || prompts.is_some() {
            can.completions = Some(JsonObject::default());
        }
        can
    }
}

/// Returns the next resource that changed. A receiver that lags behind skips the oldest changes.
async fn next_update(updates: &mut Receiver<String>) -> Option<String> {
    loop {
        match updates.recv().await {
            Ok(uri) => return Some(uri),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Returns the principal of the request, if its token has one.
pub(super) fn request_principal(cx: &RequestContext<RoleServer>) -> Option<Arc<Principal>> {
    cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get().cloned()
}

/// Returns the arguments of the call as the client wrote them.
pub(super) fn raw_arguments(cx: &RequestContext<RoleServer>) -> Option<&str> {
    let over_http = || cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get();
    let written: Option<&RawArguments> = cx.extensions.get().or_else(over_http);
    written.map(|written| &*written.0)
}

/// Returns the call if the fast path has started it.
pub(super) fn handed_off_call(
    cx: &RequestContext<RoleServer>,
) -> Option<(SpawnedCall, Subscription)> {
    cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get::<HandedOffCall>()?.take()
}

/// Determines the UI support by the client's name or its `User-Agent` header.
fn detect_ui_support(
    name: &str,
    can: Option<&ClientCapabilities>,
    extensions: &Extensions,
) -> UiSupport {
    let head = extensions.get::<hyper::http::request::Parts>();
    let agent = head.and_then(|head| head.headers.get(hyper::header::USER_AGENT)?.to_str().ok());
    match UiSupport::detect(name, can) {
        UiSupport::ChatGpt => UiSupport::ChatGpt,
        UiSupport::TextOnly | UiSupport::McpApps => {
            UiSupport::detect(agent.unwrap_or_default(), can)
        }
    }
}

/// Returns the session with the name of the client.
fn with_client_name(session: Session, client: &str) -> Session {
    const LONGEST: usize = 80;
    let name = client.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    session.with_client(ClientKind::Mcp(name))
}
