//! One peer: who it is, what it can do, and what it hears of changes.

// Log messages are on their way out of the protocol; peers of today still read them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ErrorData, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Server;
use super::ask::Reach;
use super::call;
use super::listing::Era;
use crate::context::{Client, Session};
use crate::surface::provider::{self, Dialect};
use crate::toolset::View;

type Result<T> = std::result::Result<T, ErrorData>;

/// One peer and its session.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    session: Session,
    /// The least important log message that a legacy peer wants.
    level: Mutex<LoggingLevel>,
    /// Whether a legacy peer hears of changes already.
    listening: AtomicBool,
    /// Triggered when the peer is gone.
    gone: CancellationToken,
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
            server,
            level: Mutex::new(LoggingLevel::Info),
            listening: AtomicBool::new(false),
            _guard: gone.clone().drop_guard(),
            gone,
        })
    }

    /// The session of one request: a modern peer says with each who it is.
    pub(super) fn session_for(&self, cx: &RequestContext<RoleServer>) -> Session {
        const LONGEST: usize = 80;
        let name = cx.client_info().map(|info| info.name).unwrap_or_default();
        let name = name.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        self.session.clone().with_client(Client::Mcp(name))
    }

    /// Whether the peer's user is the one to ask: the host named nobody, and the peer says
    /// that it can show a form.
    pub(super) fn can_ask(&self, cx: &RequestContext<RoleServer>) -> bool {
        let named = self.server.pipeline.has_approver() || self.session.approver().is_some();
        if named || !self.server.asks_peers {
            return false;
        }
        // A peer that names no kind of question means forms.
        cx.client_capabilities()
            .and_then(|can| can.elicitation)
            .is_some_and(|can| can.form.is_some() || can.url.is_none())
    }

    /// How far an approval may reach: a modern request over HTTP is a session by itself.
    pub(super) fn reach(&self, cx: &RequestContext<RoleServer>) -> Reach {
        let alone = cx.extensions.get::<hyper::http::request::Parts>().is_some()
            && Era::of(cx.protocol_version().as_ref()) == Era::Modern;
        if alone { Reach::Call } else { Reach::Session }
    }

    pub(super) fn level(&self) -> LoggingLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> Arc<View> {
        self.server.pipeline.toolset().view()
    }
}

/// What rmcp answers on our behalf: the handshake of both eras, pings, and that there is
/// nothing of what is not here.
impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_logging().enable_tools();
        let info = Implementation::new(self.server.name.clone(), self.server.version.clone());
        let mut config =
            ServerConfig::new(can.enable_tool_list_changed().build()).with_server_info(info);
        config.instructions = self.server.instructions.clone();
        config
    }

    async fn list_tools(
        &self,
        from: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult> {
        let era = Era::of(cx.protocol_version().as_ref());
        self.server.listing.page(&self.view(), era, from)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        call::call(self, params, cx).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.listing.tool(&self.view(), Era::Modern, name)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<()> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = params.level;
        Ok(())
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        // Once, however often the peer says that it is ready.
        if self.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let (mut changes, gone) = (Changes::of(&self.server), self.gone.clone());
        tokio::spawn(gone.run_until_cancelled_owned(async move {
            while changes.next().await && cx.peer.notify_tool_list_changed().await.is_ok() {}
        }));
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<()> {
        let mut changes = Changes::of(&self.server);
        let telling = async {
            while changes.next().await
                && subscription.sink().notify_tool_list_changed().await.is_ok()
            {}
        };
        tokio::select! {
            () = subscription.cancelled() => {}
            () = telling => {}
        }
        Ok(())
    }

    // An empty list would say that there could be some.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

/// The changes that a peer would see in the list.
struct Changes {
    server: Arc<Server>,
    changed: watch::Receiver<()>,
    told: Arc<str>,
}

impl Changes {
    fn of(server: &Arc<Server>) -> Self {
        let toolset = server.pipeline.toolset();
        let changed = toolset.changes();
        let told = provider::listing(&toolset.view(), Dialect::Mcp);
        Self { server: Arc::clone(server), changed, told }
    }

    /// Waits for the next one; false when there will be none.
    async fn next(&mut self) -> bool {
        while self.changed.changed().await.is_ok() {
            let now = provider::listing(&self.server.pipeline.toolset().view(), Dialect::Mcp);
            if now != self.told {
                self.told = now;
                return true;
            }
        }
        false
    }
}
