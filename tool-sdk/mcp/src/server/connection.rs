//! One client: its handshake, its session, its subscriptions and its requests.
//!
//! A transport parses a message, and hands requests to [`Connection::begin_request`], which
//! dispatches them by method (`dispatch`).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, JsonObject, PromptsCapability, ProtocolVersion,
    ResourcesCapability, ServerCapabilities, ServerConfig, TASKS_EXTENSION_ID, ToolsCapability,
};
use serde::Deserialize as _;
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_sdk_core::internal::LazyCancelToken;
use tool_sdk_core::{ClientKind, GrantScope, Session, ToolsetView};

use super::Server;
use super::client_roots::ClientRoots;
use super::http::PrincipalKey;
use super::in_flight::InFlightRequests;
use super::input::InputCapabilities;
use super::legacy_client::LegacyClient;
use super::listing::ProtocolEra;
use super::log_threshold::LogThreshold;
use super::message::{ClientMessage, ClientRequest, MessageParams};
use super::message_sink::MessageSink;
use super::outgoing_requests::OutgoingRequests;
use super::request_context::{ClientProfile, RequestContext};
use super::resource_adapter::ResourceSubscriptions;
use super::ui::UiSupport;

/// How messages of a client arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientTransport {
    /// Over two streams.
    Stdio,
    /// Over HTTP, in a session that began with `initialize`.
    HttpSession,
    /// Over HTTP, in requests that only share their principal.
    Stateless,
}

/// How the connection began.
enum ClientHandshake {
    /// With `initialize`.
    Legacy(LegacyHandshake),
    /// With a request that states its protocol version, as all further ones must.
    Modern,
}

/// What a legacy client said in `initialize`.
struct LegacyHandshake {
    /// The negotiated version.
    version: ProtocolVersion,
    client: Arc<ClientProfile>,
    /// The session in which the client is asked.
    session: Session,
}

/// The connection to one client.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    pub(super) principal: PrincipalKey,
    transport: ClientTransport,
    session: Session,
    handshake: OnceLock<ClientHandshake>,
    /// Whether the client has sent `notifications/initialized`.
    is_initialized: AtomicBool,
    pub(super) log_threshold: LogThreshold,
    pub(super) subscriptions: ResourceSubscriptions,
    pub(super) roots: ClientRoots,
    pub(super) in_flight: Arc<InFlightRequests>,
    pub(super) outgoing: Arc<OutgoingRequests>,
    /// Where messages go that belong to no request.
    pub(super) sink: MessageSink,
    /// Triggered when the connection is closed or dropped.
    pub(super) closed: CancellationToken,
    _guard: DropGuard,
}

impl Connection {
    pub(super) fn new(
        server: Arc<Server>,
        principal: PrincipalKey,
        transport: ClientTransport,
        sink: MessageSink,
    ) -> io::Result<Self> {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits)?;
        let id = format!("mcp-{:016x}", u64::from_be_bytes(bits));
        let mut session = server.connection_session(id);
        if transport == ClientTransport::HttpSession {
            // Closing an HTTP session cancels only its own calls.
            let own = session.cancel_token().child_token();
            session = session.with_cancel(own);
        }
        if let Some(principal) = &principal {
            session = principal.apply_to(session);
        }
        let closed = CancellationToken::new();
        let handshake = OnceLock::new();
        if transport == ClientTransport::Stateless {
            let _ = handshake.set(ClientHandshake::Modern);
            session = session.with_stateless_calls();
        }
        Ok(Self {
            server,
            principal,
            transport,
            session,
            handshake,
            is_initialized: AtomicBool::new(false),
            log_threshold: LogThreshold::default(),
            subscriptions: ResourceSubscriptions::default(),
            roots: ClientRoots::default(),
            in_flight: Arc::default(),
            outgoing: Arc::default(),
            sink,
            _guard: closed.clone().drop_guard(),
            closed,
        })
    }

    /// Ends all questions to the client: it has closed its side, so no answer can come.
    pub(super) fn disconnect(&self) {
        self.outgoing.disconnected.cancel();
    }

    /// Cancels all requests.
    pub(super) fn close(&self) {
        self.disconnect();
        self.closed.cancel();
        self.in_flight.cancel_all();
        match self.transport {
            ClientTransport::HttpSession => self.session.cancel_token().cancel(),
            // No other connection can collect their results.
            ClientTransport::Stdio => {
                for era in [ProtocolEra::Legacy, ProtocolEra::Modern] {
                    self.server.tasks.cancel_all(&self.task_owner(era));
                }
            }
            ClientTransport::Stateless => {}
        }
    }

    /// Returns true if the client has begun the connection.
    pub(super) fn has_handshake(&self) -> bool {
        self.handshake.get().is_some()
    }

    /// Returns true if requests of different clients may have the same id.
    pub(super) fn is_stateless(&self) -> bool {
        self.transport == ClientTransport::Stateless
    }

    /// Returns true if the client may send batches.
    pub(super) fn allows_batches(&self) -> bool {
        let version = self.legacy_handshake().map(|handshake| &handshake.version);
        version == Some(&ProtocolVersion::V_2025_03_26)
    }

    /// Returns what a legacy client says about itself.
    pub(super) fn legacy_client(&self) -> Option<&ClientProfile> {
        Some(&self.legacy_handshake()?.client)
    }

    /// Returns true if the client is at the other end of two streams.
    pub(super) fn is_at_streams(&self) -> bool {
        self.transport == ClientTransport::Stdio
    }

    fn legacy_handshake(&self) -> Option<&LegacyHandshake> {
        match self.handshake.get() {
            Some(ClientHandshake::Legacy(handshake)) => Some(handshake),
            _ => None,
        }
    }

    /// Handles a message that gets no response.
    pub(super) fn handle_notification(self: &Arc<Self>, method: &str, params: &MessageParams) {
        match method {
            "notifications/cancelled" => {
                let cancelled = params.decode::<CancelledNotificationParam>(method);
                if let Some(id) = cancelled.ok().and_then(|cancelled| cancelled.request_id) {
                    self.in_flight.cancel(&id);
                }
            }
            "notifications/initialized"
                if self.legacy_handshake().is_some()
                    // Only once, even if the client repeats the notification.
                    && !self.is_initialized.swap(true, Ordering::Relaxed) =>
            {
                self.forward_changes();
                self.request_roots();
            }
            "notifications/roots/list_changed" => self.request_roots(),
            _ => {}
        }
    }

    /// Handles a message that is not a request.
    pub(super) fn handle_other(self: &Arc<Self>, message: ClientMessage) {
        match message {
            ClientMessage::Request(_) => {}
            ClientMessage::Notification { method, params } => {
                self.handle_notification(&method, &params);
            }
            ClientMessage::Response { id: Some(id), answer } => self.outgoing.resolve(&id, answer),
            // The client could not read a message; it does not say which.
            ClientMessage::Response { id: None, .. } => {}
        }
    }

    /// Negotiates the protocol version and keeps what the client says about itself.
    pub(super) fn initialize(
        &self,
        params: &MessageParams,
        user_agent: Option<&str>,
    ) -> Result<InitializeResult, ErrorData> {
        let params = params
            .decode::<InitializeRequestParams>("initialize")
            .map_err(|error| describe_bad_capability(params).unwrap_or(error))?;
        let version = negotiate_version(&params.protocol_version);
        let client =
            ClientProfile::new(params.client_info.name, Some(&params.capabilities), user_agent);
        let mut result = self.server_config(ProtocolEra::Legacy, client.ui);
        result.protocol_version = version.clone();
        let session = with_client_name(self.session.clone(), &client.name);
        let session = self.attach_client(session, client.input, self.sink.clone());
        let handshake = LegacyHandshake { version, client: Arc::new(client), session };
        self.handshake.set(ClientHandshake::Legacy(handshake)).map_err(|_| {
            let words = "the session is already initialized; open a new session instead";
            ErrorData::invalid_request(words, None)
        })?;
        Ok(result)
    }

    /// Checks what a request states about its protocol version and its client, and begins a modern
    /// connection with the first one that states both.
    pub(super) fn request_context(
        &self,
        request: &mut ClientRequest,
        sink: MessageSink,
        user_agent: Option<&str>,
    ) -> Result<RequestContext, ErrorData> {
        let meta = std::mem::take(&mut request.meta);
        let stated = meta.protocol_version();
        let legacy = self.legacy_handshake();
        let is_discover = request.method == "server/discover";
        if let Some(version) = &stated
            && !ProtocolVersion::KNOWN_VERSIONS.contains(version)
        {
            return Err(ErrorData::unsupported_protocol_version(
                version.clone(),
                ProtocolVersion::KNOWN_VERSIONS,
            ));
        }
        let is_modern = stated.as_ref().is_some_and(|version| !version.has_initialize());
        if is_discover || is_modern || legacy.is_none() {
            let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
            if !missing.is_empty() {
                let missing = missing.join(", ");
                let words =
                    format!("request _meta is missing or has malformed required fields: {missing}");
                return Err(ErrorData::invalid_params(words, None));
            }
        }
        let (version, client) = match (stated, legacy) {
            (None, Some(legacy)) => (legacy.version.clone(), Arc::clone(&legacy.client)),
            (stated, _) => {
                let name = meta.client_info().map(|info| info.name).unwrap_or_default();
                let profile =
                    ClientProfile::new(name, meta.client_capabilities().as_ref(), user_agent);
                (stated.unwrap_or(ProtocolVersion::V_2025_03_26), Arc::new(profile))
            }
        };
        if !is_discover && legacy.is_none() {
            // A client may discover the server before it decides how to begin.
            let _ = self.handshake.set(ClientHandshake::Modern);
        }
        let cancel = LazyCancelToken::default();
        Ok(RequestContext { id: request.id.clone(), meta, version, client, sink, cancel })
    }

    /// Returns the session of a request.
    pub(super) fn request_session(&self, cx: &RequestContext) -> Session {
        with_client_name(self.session.clone(), &cx.client.name)
    }

    /// Returns the session of a legacy client's request; the client is asked while its call runs.
    pub(super) fn legacy_session(&self, cx: &RequestContext) -> Session {
        self.attach_fallback_approver(self.legacy_client_session(cx))
    }

    fn legacy_client_session(&self, cx: &RequestContext) -> Session {
        let Some(legacy) = self.legacy_handshake() else {
            // Without a session, the client has no way to respond.
            let (session, input) = (self.request_session(cx), InputCapabilities::default());
            return self.attach_client(session, input, cx.sink.clone());
        };
        let session = self.apply_roots(legacy.session.clone());
        let input = legacy.client.input;
        // Over HTTP, questions go to the stream of their request.
        match self.transport == ClientTransport::HttpSession && input.supports_any() {
            true => self.attach_client(session, input, cx.sink.clone()),
            false => session,
        }
    }

    /// Returns the session in which the client is asked, through `sink`.
    fn attach_client(
        &self,
        session: Session,
        input: InputCapabilities,
        sink: MessageSink,
    ) -> Session {
        let (outgoing, can_approve) = (Arc::clone(&self.outgoing), self.can_ask(input));
        LegacyClient::new(outgoing, sink, input, can_approve).attach_to(session)
    }

    /// Returns the session with the host's other approver, if no approver was found before.
    pub(super) fn attach_fallback_approver(&self, session: Session) -> Session {
        let has_approver =
            self.server.pipeline.has_approver() || session.session_approver().is_some();
        let find = self.server.fallback_approver.as_ref().filter(|_| !has_approver);
        match find.and_then(|find| find()) {
            Some(approver) => session.with_shared_approver(approver),
            None => session,
        }
    }

    /// Returns true if the client's user approves calls: the host set no approver, and the client
    /// supports forms.
    pub(super) fn can_ask(&self, can: InputCapabilities) -> bool {
        let has_approver =
            self.server.pipeline.has_approver() || self.session.session_approver().is_some();
        !has_approver && self.server.asks_client && can.form
    }

    /// Returns the widest scope of an approval. Stateless requests over HTTP are only identified by
    /// their token; if that is the shared token, an approval holds for a single call.
    pub(super) fn approval_scope(&self) -> GrantScope {
        match self.is_stateless() && self.principal.is_none() {
            true => GrantScope::Once,
            false => GrantScope::Session,
        }
    }

    /// Returns the session in which the client's calls run.
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn toolset_view(&self) -> Arc<ToolsetView> {
        self.server.pipeline.toolset().view_for(&self.session)
    }

    /// Returns the names and the version that clients see with each result.
    pub(super) fn server_info(&self) -> Implementation {
        let mut info = Implementation::new(self.server.name.clone(), self.server.version.clone());
        info.title = self.server.title.clone();
        info
    }

    /// Returns all that clients see of the server when they begin.
    fn full_server_info(&self) -> Implementation {
        let mut info = self.server_info();
        info.website_url = self.server.website.clone();
        // Both types have the fields of the protocol.
        let icons = serde_json::to_value(&self.server.icons).and_then(serde_json::from_value);
        info.icons = icons.ok().filter(|icons: &Vec<_>| !icons.is_empty());
        info
    }

    pub(super) fn server_config(&self, era: ProtocolEra, ui: UiSupport) -> ServerConfig {
        let mut config = ServerConfig::new(self.server_capabilities(era, ui));
        config.server_info = self.full_server_info();
        config.instructions = self.server.instructions.clone();
        config
    }

    /// Returns the announced capabilities, which are only those that the host provides.
    pub(super) fn server_capabilities(
        &self,
        era: ProtocolEra,
        ui: UiSupport,
    ) -> ServerCapabilities {
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        let mut can = ServerCapabilities::default();
        (can.tools, can.logging) = (Some(tools), Some(JsonObject::default()));
        let (resources, prompts) = (&self.server.resources, &self.server.prompts);
        if !self.server.pages.is_empty() && ui != UiSupport::TextOnly {
            can.resources = Some(ResourcesCapability::default());
            can.extensions = ui.server_extension();
        }
        if let Some(resources) = resources {
            let mut how = ResourcesCapability::default();
            how.subscribe = resources.subscribe_updates().map(|_| true);
            how.list_changed = resources.subscribe_list_changes().map(|_| true);
            can.resources = Some(how);
        }
        if let Some(prompts) = prompts {
            let mut how = PromptsCapability::default();
            how.list_changed = prompts.subscribe_list_changes().map(|_| true);
            can.prompts = Some(how);
        }
        if resources.is_some() || prompts.is_some() {
            can.completions = Some(JsonObject::default());
        }
        if era == ProtocolEra::Modern && self.has_task_tools() {
            let extensions = can.extensions.get_or_insert_default();
            extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::default());
        }
        can
    }
}

/// Returns the error that names the capability that does not match the protocol, for the author of
/// the client.
fn describe_bad_capability(params: &MessageParams) -> Option<ErrorData> {
    let capabilities: JsonObject = params.member("capabilities").ok()??;
    capabilities.into_iter().find_map(|(name, value)| {
        let alone = JsonObject::from_iter([(name.clone(), value)]);
        let error = ClientCapabilities::deserialize(alone).err()?;
        let name = name.escape_debug();
        let words = format!(
            "the `params` of `initialize` do not match the protocol: `capabilities.{name}`: {error}"
        );
        Some(ErrorData::invalid_params(words, None))
    })
}

/// Returns the requested version if it has the handshake `initialize`, otherwise the newest one
/// that has it.
fn negotiate_version(requested: &ProtocolVersion) -> ProtocolVersion {
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let requested = known.find(|version| *version == requested && version.has_initialize());
    requested.cloned().unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// Returns the session with the name of the client.
fn with_client_name(session: Session, client: &str) -> Session {
    const MAX_CHARS: usize = 80;
    let name = client.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    session.with_client(ClientKind::Mcp(name))
}

impl ProtocolEra {
    /// Returns the era of a version.
    pub(super) fn from_version(version: &ProtocolVersion) -> Self {
        match version.has_initialize() {
            true => Self::Legacy,
            false => Self::Modern,
        }
    }
}
