//! Serves the tools of a pipeline over the Model Context Protocol (MCP).
//!
//! The opposite direction, tools of other MCP servers, is in `client`. `resource_cache` caches
//! resources of those servers.
//!
//! ```text
//! stdio · http ─▶ json_rpc_batch                                splits batches into messages
//!               ▼
//!             fast_path · message                               validates; answers simple requests
//!               ▼
//!             connection ─▶ listing · ui                        what the client may see
//!                            ├▶ resource_adapter ─▶ resources   resources and prompts of the host
//!                            └▶ call ─▶ pipeline ─▶ result      runs a call, converts the outcome
//!                                  ├▶ event_relay               progress and log notifications
//!                                  ├▶ approval_form · input     questions to the client
//!                                  └▶ legacy_client · suspended_calls   asks during a call, or between requests
//! ```
//!
//! Both protocol eras are supported: sessions that begin with `initialize` (up to 2025-11-25), and
//! stateless requests (from 2026-07-28 on).
//!
//! **Invariant:** every call goes through the pipeline. A client counts as a model, not as a user:
//! only an answer to a question that the server asked can allow a call.

#![forbid(unsafe_code)]

mod approval_form;
mod call;
mod client;
mod connection;
mod event_relay;
mod fast_path;
mod http;
mod input;
mod json_rpc_batch;
mod legacy_client;
mod listing;
mod message;
mod resource_adapter;
mod resource_cache;
mod resources;
mod result;
mod stdio;
mod suspended_calls;
mod tool_list_changes;
mod ui;

use std::fmt;
use std::io;
use std::sync::Arc;

use rmcp::service::{RoleServer, ServerInitializeError, serve_server};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tool_sdk_core::{Pipeline, Session};

pub use self::client::{
    ClientFeatures, ConnectFn, ErrorClass, HttpEndpoint, InvalidServerConfig, ProgressCallback,
    RemoteCall, RemoteConnection, RemoteError, RemoteFuture, RemoteResult, RemoteTool,
    ServerCommand, ServerConfig, ServerManager, ServerRequestHandler, ServerStatus, ToolPins,
    TransportConfig, connect_streams,
};
use self::connection::Connection;
pub use self::http::HttpService;
use self::listing::ToolListing;
pub use self::resource_cache::{CacheStats, ResourceCache, ResourcePrefetcher};
pub use self::resources::{
    PromptArgument, PromptDefinition, PromptProvider, ProviderFuture, ResourceDefinition,
    ResourceProvider,
};
use self::suspended_calls::SuspendedCalls;
use self::ui::UiPage;

/// For the other crates of the SDK, without a promise of stability.
#[doc(hidden)]
pub mod internal {
    pub use crate::client::{PERMISSIONS, name_prefix, parse_server};
}

/// Serves the tools of a pipeline over MCP.
///
/// Each connection is a session of its own. If the host set no approver, the client's user is
/// asked, provided that the client supports forms. For every other client an undecided call is
/// denied, and the denial says how to allow it.
///
/// Cheap to clone; clones serve the same tools.
///
/// # Examples
///
/// A program that serves its tools over standard input and output:
///
/// ```no_run
/// use tool_sdk::{LoopGuard, Pipeline, Registry, Session, mcp};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pipeline = Pipeline::new(Registry::linked()?).loop_guard(LoopGuard::default());
/// mcp::Server::new(pipeline, Session::default()).with_name("shelf", "1.0.0").serve_stdio().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    pipeline: Pipeline,
    session: Session,
    name: String,
    version: String,
    instructions: Option<String>,
    setup_session: Option<Arc<dyn Fn(Session) -> Session + Send + Sync>>,
    asks_client: bool,
    uses_fast_path: bool,
    resources: Option<Arc<dyn ResourceProvider>>,
    prompts: Option<Arc<dyn PromptProvider>>,
    pages: Vec<UiPage>,
    listing: Arc<ToolListing>,
    suspended_calls: Arc<SuspendedCalls>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("pipeline", &self.pipeline)
            .finish_non_exhaustive()
    }
}

/// Configuration, before anything is served.
impl Server {
    /// Returns a server for the pipeline's tools. Every connection starts with a copy of `session`.
    #[must_use]
    pub fn new(pipeline: Pipeline, session: Session) -> Self {
        Self {
            pipeline,
            session,
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: None,
            setup_session: None,
            asks_client: true,
            uses_fast_path: true,
            resources: None,
            prompts: None,
            pages: Vec::new(),
            listing: Arc::default(),
            suspended_calls: Arc::default(),
        }
    }

    /// Sets the server name and version that clients see.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (name.into(), version.into());
        self
    }

    /// Sets a callback that changes the session of each new connection. The session has its id by
    /// then.
    #[must_use]
    pub fn with_session_setup(
        mut self,
        equip: impl Fn(Session) -> Session + Send + Sync + 'static,
    ) -> Self {
        self.setup_session = Some(Arc::new(equip));
        self
    }

    /// Sets whether the client's user is asked for approvals if the host set no approver; true by
    /// default. Without an approver, a call that needs approval is denied.
    #[must_use]
    pub fn with_client_approvals(mut self, ask: bool) -> Self {
        self.asks_client = ask;
        self
    }

    /// Sets whether pings, lists and calls take the fast path in front of rmcp; true by default.
    /// Over stdio clients see no difference. Over HTTP a response without earlier notifications is
    /// sent as JSON and not as an event stream; the protocol allows both.
    #[must_use]
    pub fn with_fast_path(mut self, directly: bool) -> Self {
        self.uses_fast_path = directly;
        self
    }

    /// Serves the resources of this provider.
    #[must_use]
    pub fn with_resources(mut self, resources: impl ResourceProvider) -> Self {
        self.resources = Some(Arc::new(resources));
        self
    }

    /// Serves the prompts of this provider.
    #[must_use]
    pub fn with_prompts(mut self, prompts: impl PromptProvider) -> Self {
        self.prompts = Some(Arc::new(prompts));
        self
    }

    /// Adds an HTML page for the tools that name it as their `ui`. Only clients that show pages
    /// (the MCP Apps extension, and ChatGPT) see it.
    ///
    /// The URI begins with `ui://`. The name should say what the page shows.
    #[must_use]
    pub fn with_page(
        mut self,
        uri: impl Into<String>,
        name: impl Into<String>,
        html: impl Into<String>,
    ) -> Self {
        self.pages.push(UiPage { uri: uri.into(), name: name.into(), html: html.into() });
        self
    }

    /// Sets the instructions that clients receive about the tools as a whole.
    #[must_use]
    pub fn with_instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }
}

/// The start of a connection.
impl Server {
    fn connection_session(&self, id: String) -> Session {
        let session = self.session.clone().with_id(id);
        match &self.setup_session {
            Some(equip) => equip(session),
            None => session,
        }
    }
}

/// Transports.
impl Server {
    /// Serves the client at standard input and output until it disconnects.
    ///
    /// Nothing else may write to standard output or read from standard input meanwhile.
    ///
    /// # Errors
    ///
    /// Fails when the client does not initialize the session as the protocol requires.
    pub fn serve_stdio(&self) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let server = self.clone();
        async move {
            let (read, write) = stdio::open_streams()?;
            server.serve(read, write).await
        }
    }

    /// Serves the client at the other end of two streams, one message per line, until it
    /// disconnects. Running calls then have five seconds to end.
    ///
    /// # Errors
    ///
    /// Fails when the client does not initialize the session as the protocol requires.
    pub fn serve<R, W>(
        &self,
        read: R,
        write: W,
    ) -> impl Future<Output = io::Result<()>> + Send + use<R, W>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let server = Arc::new(self.clone());
        // Boxed, because the future is large and would be copied onto the caller's stack several
        // times.
        Box::pin(async move {
            // A last line without a newline is a message as well.
            let read = read.chain(io::Cursor::new([b'\n']));
            let (pipeline, listing) = (server.pipeline.clone(), Arc::clone(&server.listing));
            let (behind, opened) = fast_path::wrap_streams(read, write, pipeline, listing);
            serve_transport(Connection::new(server)?.with_fast_path(&opened), behind).await
        })
    }

    /// Returns the server over streamable HTTP, as a tower service for the server of a host.
    ///
    /// The host authenticates clients before: in a layer in front of the service it refuses
    /// requests, checks host and origin, and inserts the `Arc<Principal>` of a request into its
    /// extensions. Requests without one are those of a single, anonymous user.
    /// `tool_sdk::mcp::router` does all of that with tokens.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use axum::Router;
    /// use tool_sdk::mcp::Server;
    /// use tool_sdk::{Pipeline, Registry, Session};
    ///
    /// let server = Server::new(Pipeline::new(Registry::linked()?), Session::default());
    /// let app: Router = Router::new().nest_service("/mcp", server.http_service());
    /// # let _ = app;
    /// # Ok::<(), tool_sdk::RegistryError>(())
    /// ```
    #[must_use]
    pub fn http_service(&self) -> HttpService {
        HttpService::new(Arc::new(self.clone()))
    }

    /// Declares that several principals share the server, so that state which is kept per user,
    /// such as the pins of foreign tools, is kept apart for the anonymous ones as well.
    #[must_use]
    pub fn shared_by_principals(mut self) -> Self {
        self.session = self.session.with_shared_server();
        self
    }
}

/// Serves one client until it disconnects.
async fn serve_transport(
    connection: Connection,
    peer: impl Transport<RoleServer> + 'static,
) -> io::Result<()> {
    match serve_server(connection, peer).await {
        Ok(service) => service.waiting().await.map(drop).map_err(io::Error::other),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => {
            Err(io::Error::new(io::ErrorKind::InvalidData, initialize_error_text(&error)))
        }
    }
}

/// Describes in one sentence why the session could not be initialized.
fn initialize_error_text(error: &ServerInitializeError) -> String {
    match error {
        ServerInitializeError::ExpectedInitializeRequest(_) => {
            "the client must begin with `initialize`, or with a request that states its protocol version"
                .to_owned()
        }
        ServerInitializeError::InitializeFailed(error) => {
            format!("the client was refused: {}", error.message)
        }
        ServerInitializeError::TransportError { .. } => "the client disconnected".to_owned(),
        _ => "the session could not be initialized".to_owned(),
    }
}
