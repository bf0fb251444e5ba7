//! One peer: who it is, what it can do, and what it hears of changes.

// Log messages are on their way out of the protocol; peers of today still read them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

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

use super::fast_path::{FastPathGate, HandedOffCall, LogThreshold, SessionResponder, SpawnedCall};
use super::http::{HttpSessions, PrincipalKey, StatelessSessions};
use super::input::InputCapabilities;
use super::legacy_client::{LegacyClient, OriginatingRequest};
use super::listing::ProtocolEra;
use super::message::RawArguments;
use super::resource_adapter::ResourceSubscriptions;
use super::result::ContentSupport;
use super::ui::UiSupport;
use super::{Principal, Server};
use crate::context::{Client, Session};
use crate::event::Events;
use crate::permission::Extent;
use crate::toolset::ToolsetView;

type Result<T> = std::result::Result<T, ErrorData>;

/// One peer and its session.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    session: Session,
    /// Who opened the connection, and that one's session.
    principal: OnceLock<(PrincipalKey, Session)>,
    /// The sessions of those whose every request is a connection.
    stateless_sessions: Option<Arc<StatelessSessions>>,
    /// The sessions over HTTP, this one among them.
    sessions: Option<Arc<HttpSessions>>,
    /// The least important log message that a legacy peer wants.
    level: Arc<LogThreshold>,
    /// Whether a legacy peer hears of changes already.
    is_initialized: AtomicBool,
    /// The resources that a legacy peer wants to hear of.
    subscriptions: Arc<ResourceSubscriptions>,
    /// What answers calls before they come here, where there is such a thing.
    fast_path: Option<Arc<FastPathGate>>,
    /// Triggered when the peer says nothing any more.
    disconnected: CancellationToken,
    /// Triggered when calls have had their time after that.
    pub(super) grace_expired: CancellationToken,
    /// Triggered when the peer is gone.
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
            session: server.session(id),
            principal: OnceLock::new(),
            stateless_sessions: None,
            sessions: None,
            server,
            level: Arc::default(),
            fast_path: None,
            disconnected: CancellationToken::new(),
            grace_expired: CancellationToken::new(),
            is_initialized: AtomicBool::new(false),
            subscriptions: Arc::default(),
            _guard: gone.clone().drop_guard(),
            closed: gone,
        })
    }

    /// Lets calls be answered elsewhere, once the session is open.
    pub(super) fn with_fast_path(mut self, opened: &Arc<FastPathGate>) -> Self {
        self.fast_path = self.server.uses_fast_path.then(|| Arc::clone(opened));
        (self.level, self.disconnected, self.grace_expired) = opened.connection_state();
        self
    }

    fn legacy_client(&self, peer: &Peer<RoleServer>, can: InputCapabilities) -> LegacyClient {
        LegacyClient::new(peer.clone(), can, self.can_ask(can), self.disconnected.clone())
    }

    /// Lets requests that stand for themselves share the session of their owner, and those of
    /// a session be answered before they come here.
    pub(super) fn with_http_sessions(
        mut self,
        lasting: Arc<StatelessSessions>,
        sessions: Arc<HttpSessions>,
    ) -> Self {
        self.stateless_sessions = Some(lasting);
        // What ends with a session over HTTP is its own, and nobody else's.
        let own = self.session.cancel_token().child_token();
        self.session = self.session.with_cancel(own);
        self.sessions = self.server.uses_fast_path.then_some(sessions);
        self
    }

    /// The session of one request: a modern peer says with each who it is.
    pub(super) fn request_session(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let name = cx.client_info().map(|info| info.name).unwrap_or_default();
        Ok(with_client_name(self.principal_session(cx)?, &name))
    }

    /// The session of whoever opened the connection; nobody else may use it.
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
            false => Err(ErrorData::invalid_request("this session belongs to somebody else", None)),
        }
    }

    /// Whether the peer's user is the one to ask: the host named nobody, and the peer says
    /// that it can show a form.
    pub(super) fn can_ask(&self, can: InputCapabilities) -> bool {
        let named = self.server.pipeline.has_approver() || self.session.approver().is_some();
        !named && self.server.asks_client && can.form
    }

    /// What the peer says that it can answer.
    pub(super) fn input_capabilities(&self, cx: &RequestContext<RoleServer>) -> InputCapabilities {
        InputCapabilities::from_client(cx.client_capabilities())
    }

    /// What the peer shows beside text, by what it says of itself.
    pub(super) fn ui_support(&self, cx: &RequestContext<RoleServer>) -> UiSupport {
        let name = cx.client_info().map(|info| info.name).unwrap_or_default();
        detect_ui_support(&name, cx.client_capabilities().as_ref(), &cx.extensions)
    }

    /// The session of a legacy peer, which is asked while its calls run.
    pub(super) fn legacy_session(&self, cx: &RequestContext<RoleServer>) -> Result<Session> {
        let cause = OriginatingRequest { request: cx.id.clone(), registered: None };
        let user = self.legacy_client(&cx.peer, self.input_capabilities(cx)).for_request(cause);
        Ok(user.attach_to(self.request_session(cx)?))
    }

    /// How far an approval may reach: who sends modern requests over HTTP is only known by the
    /// token, which several may have unless it is the one of somebody with a name.
    pub(super) fn approval_scope(&self, cx: &RequestContext<RoleServer>) -> Extent {
        let is_modern =
            ProtocolEra::from_version(cx.protocol_version().as_ref()) == ProtocolEra::Modern;
        let is_http = cx.extensions.get::<hyper::http::request::Parts>().is_some();
        match is_http && is_modern && request_principal(cx).is_none() {
            true => Extent::Call,
            false => Extent::Session,
        }
    }

    /// The least important log message that a legacy peer wants.
    pub(super) fn min_log_level(&self) -> u8 {
        self.level.get()
    }

    fn toolset_view(&self, cx: &RequestContext<RoleServer>) -> Result<Arc<ToolsetView>> {
        Ok(self.server.pipeline.toolset().view_for(&self.principal_session(cx)?))
    }

    /// Lets calls of a legacy peer be answered without rmcp from now on. Over HTTP its session
    /// has no name yet.
    fn open_fast_path(
        &self,
        info: &InitializeRequestParams,
        blocks: ContentSupport,
        cx: &RequestContext<RoleServer>,
    ) {
        let Some(opened) = &self.fast_path else { return };
        let (user, session, shows) = self.describe_client(info, &cx.peer, &cx.extensions);
        opened.open_session(user.attach_to(session), shows, blocks);
    }

    /// The same over HTTP, where the session has its name by now.
    fn open_http_fast_path(&self, cx: &NotificationContext<RoleServer>) {
        let (Some(sessions), Some(head)) = (&self.sessions, cx.extensions.get()) else { return };
        let Some(info) = cx.peer.peer_info() else { return };
        let (user, session, shows) = self.describe_client(&info, &cx.peer, &cx.extensions);
        let session = user.clone().attach_to(session);
        let (pipeline, listing) = (self.server.pipeline.clone(), self.server.listing.clone());
        let (level, user) = (Arc::clone(&self.level), Some(user).filter(LegacyClient::can_answer));
        let blocks = ContentSupport::from_version(Some(&info.protocol_version));
        sessions.set_responder(head, |open| SessionResponder {
            pipeline,
            listing,
            session,
            client: user,
            ui: shows,
            content: blocks,
            log_threshold: level,
            in_flight: open,
        });
    }

    /// What a legacy peer has said of itself when it began.
    fn describe_client(
        &self,
        info: &InitializeRequestParams,
        peer: &Peer<RoleServer>,
        extensions: &Extensions,
    ) -> (LegacyClient, Session, UiSupport) {
        let can = InputCapabilities::from_client(Some(info.capabilities.clone()));
        let shows = detect_ui_support(&info.client_info.name, Some(&info.capabilities), extensions);
        let own = self.principal.get().map_or(&self.session, |(_, session)| session);
        (
            self.legacy_client(peer, can),
            with_client_name(own.clone(), &info.client_info.name),
            shows,
        )
    }

    /// Whether anybody is told of resources that change.
    fn has_resource_updates(&self) -> bool {
        self.server
            .resources
            .as_ref()
            .is_some_and(|resources| resources.subscribe_updates().is_some())
    }

    /// Tells a legacy peer of the resources that it watches.
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

    /// What is announced: nothing that is not there.
    fn server_capabilities(&self, shows: UiSupport) -> ServerCapabilities {
        let can = ServerCapabilities::builder().enable_logging().enable_tools();
        let mut can = can.enable_tool_list_changed().build();
        let (resources, prompts) = (&self.server.resources, &self.server.prompts);
        if !self.server.pages.is_empty() && shows != UiSupport::TextOnly {
            can.resources = Some(ResourcesCapability::default());
            can.extensions = shows.server_extension();
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

/// The next resource that has changed. Who is behind is told of those that are left.
async fn next_update(updates: &mut Receiver<String>) -> Option<String> {
    loop {
        match updates.recv().await {
            Ok(uri) => return Some(uri),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Who sent the request, where tokens say that.
pub(super) fn request_principal(cx: &RequestContext<RoleServer>) -> Option<Arc<Principal>> {
    cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get().cloned()
}

/// The arguments as the peer wrote them.
pub(super) fn raw_arguments(cx: &RequestContext<RoleServer>) -> Option<&str> {
    let over_http = || cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get();
    let written: Option<&RawArguments> = cx.extensions.get().or_else(over_http);
    written.map(|written| &*written.0)
}

/// The call, where it has begun before its request came here.
pub(super) fn handed_off_call(cx: &RequestContext<RoleServer>) -> Option<(SpawnedCall, Events)> {
    cx.extensions.get::<hyper::http::request::Parts>()?.extensions.get::<HandedOffCall>()?.take()
}

/// What a client shows: it is known by its name, or by what the head of its request says.
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

/// The session as that of a client of this name.
fn with_client_name(session: Session, client: &str) -> Session {
    const LONGEST: usize = 80;
    let name = client.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    session.with_client(Client::Mcp(name))
}
