//! The tools as a server of the Model Context Protocol.
//!
//! The other way round, tools of other servers are the business of `client`, and what those
//! keep beside their tools that of `resources`.
//!
//! ```text
//! stdio · http ─▶ batch                                    what comes together, one by one
//!               ▼
//!             direct · message                             what can be answered at once
//!               ▼
//!             connection ─▶ listing · page                 what a peer is told
//!                            ├▶ library ─▶ offer           resources and prompts of the host
//!                            └▶ call ─▶ pipeline ─▶ result  what became of a call
//!                                  ├▶ relay                 progress and log messages
//!                                  ├▶ ask · input           what the peer is asked
//!                                  └▶ user · parked         while the call runs, or between two requests
//! ```
//!
//! Both eras of the protocol are spoken: sessions that begin with `initialize`, up to
//! 2025-11-25, and requests that stand for themselves, from 2026-07-28 on.
//!
//! **Invariant:** every call goes through the pipeline, and a peer is a model and no user:
//! only an answer to a question that the server asked allows anything.

mod approval_form;
mod call;
pub(in crate::surface) mod client;
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
#[cfg(test)]
mod tests;
mod tool_list_changes;
mod ui;

use std::fmt;
use std::io;
use std::sync::Arc;

use rmcp::service::{RoleServer, ServerInitializeError, serve_server};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

pub use self::client::{
    ClientFeatures, ConnectFn, ErrorClass, HttpEndpoint, InvalidServerConfig, ProgressCallback,
    RemoteCall, RemoteConnection, RemoteError, RemoteFuture, RemoteResult, RemoteTool,
    ServerCommand, ServerConfig, ServerManager, ServerRequestHandler, ServerStatus, ToolPins,
    TransportConfig, connect_streams,
};
use self::connection::Connection;
pub use self::http::{HttpListener, HttpOptions, InvalidToken, Principal, Token, UnixSocket};
use self::listing::ToolListing;
pub use self::resource_cache::{CacheStats, ResourceCache, ResourcePrefetcher};
pub use self::resources::{
    PromptArgument, PromptDefinition, PromptProvider, ProviderFuture, ResourceDefinition,
    ResourceProvider,
};
use self::suspended_calls::SuspendedCalls;
use self::ui::UiPage;
use crate::context::Session;
use crate::pipeline::Pipeline;

/// Serves the tools of a pipeline.
///
/// Each connection is a session of its own. Where the host named nobody to ask, the peer's
/// user is asked, by peers that can do so; everybody else reads in the denial how the call
/// could be allowed.
///
/// Cheap to clone; clones serve the same tools.
///
/// # Examples
///
/// A program that serves its tools to whoever started it:
///
/// ```no_run
/// use tool_sdk::{LoopGuard, Pipeline, Registry, Session, mcp};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pipeline = Pipeline::new(Registry::linked()?).loop_guard(LoopGuard::default());
/// mcp::Server::new(pipeline, Session::default()).named("shelf", "1.0.0").serve_stdio().await?;
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

/// What is set before anything is served.
impl Server {
    /// A server of the pipeline's tools; every connection starts with what `session` lends.
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

    /// Sets what peers are told that they talk to.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (name.into(), version.into());
        self
    }

    /// Changes the session of every connection, which has its id by then.
    #[must_use]
    pub fn with_session_setup(
        mut self,
        equip: impl Fn(Session) -> Session + Send + Sync + 'static,
    ) -> Self {
        self.setup_session = Some(Arc::new(equip));
        self
    }

    /// Sets whether the peer's user is asked where the host named nobody; true unless set.
    /// Without anybody to ask, what would be asked is denied.
    #[must_use]
    pub fn with_client_approvals(mut self, ask: bool) -> Self {
        self.asks_client = ask;
        self
    }

    /// Sets whether pings, lists and calls are answered without a detour; true unless set. Over
    /// two streams peers see no difference. Over HTTP an answer that nothing goes before comes
    /// as JSON, where it would come in a stream of events; both are what the protocol knows.
    #[must_use]
    pub fn with_fast_path(mut self, directly: bool) -> Self {
        self.uses_fast_path = directly;
        self
    }

    /// Serves these resources beside the tools.
    #[must_use]
    pub fn with_resources(mut self, resources: impl ResourceProvider) -> Self {
        self.resources = Some(Arc::new(resources));
        self
    }

    /// Serves these prompts beside the tools.
    #[must_use]
    pub fn with_prompts(mut self, prompts: impl PromptProvider) -> Self {
        self.prompts = Some(Arc::new(prompts));
        self
    }

    /// Lends a page of HTML to the tools that name it as their `ui`, for clients that show
    /// pages: those of the extension MCP Apps, and ChatGPT. Nobody else is told of it.
    ///
    /// The URI begins with `ui://`. Names for people should say what the page shows.
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

    /// Sets what peers are told about the tools as a whole.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }
}

/// What connections begin with.
impl Server {
    fn session(&self, id: String) -> Session {
        let session = self.session.clone().with_id(id);
        match &self.setup_session {
            Some(equip) => equip(session),
            None => session,
        }
    }
}

/// The ways to serve.
impl Server {
    /// Serves the peer at the other end of standard input and output, until it hangs up.
    ///
    /// Nothing else may write to standard output meanwhile, and nothing else may read from
    /// standard input.
    ///
    /// # Errors
    ///
    /// Fails when the peer does not begin as the protocol says.
    pub fn serve_stdio(&self) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let server = self.clone();
        async move {
            let (read, write) = stdio::open_streams()?;
            server.serve(read, write).await
        }
    }

    /// Serves the peer at the other end of two streams, one message a line, until it hangs
    /// up. Calls that run then have five seconds to end.
    ///
    /// # Errors
    ///
    /// Fails when the peer does not begin as the protocol says.
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
        // It is large, and would take as much of the stack of whoever waits for it, several times.
        Box::pin(async move {
            // A last line without its end is a message all the same.
            let read = read.chain(io::Cursor::new([b'\n']));
            let (pipeline, listing) = (server.pipeline.clone(), Arc::clone(&server.listing));
            let (behind, opened) = fast_path::wrap_streams(read, write, pipeline, listing);
            serve_transport(Connection::new(server)?.with_fast_path(&opened), behind).await
        })
    }

    /// Serves everybody who knows the token, over streamable HTTP at `/mcp`: at a TCP listener, or
    /// at a [`Socket`], whose clients say that they want `localhost`.
    ///
    /// # Errors
    ///
    /// Fails when connections cannot be accepted.
    pub fn serve_http<L: Into<HttpListener>>(
        &self,
        listener: L,
        http: HttpOptions,
    ) -> impl Future<Output = io::Result<()>> + Send + use<L> {
        let mut server = self.clone();
        if http.has_principals() {
            server.session = server.session.among_many();
        }
        http::serve(Arc::new(server), listener.into(), http)
    }
}

/// Speaks the protocol with one peer, until it hangs up.
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

/// Why nothing began, in a sentence.
fn initialize_error_text(error: &ServerInitializeError) -> String {
    match error {
        ServerInitializeError::ExpectedInitializeRequest(_) => {
            "the client has to begin with `initialize`, or with a request that says its version"
                .to_owned()
        }
        ServerInitializeError::InitializeFailed(error) => {
            format!("the client was refused: {}", error.message)
        }
        ServerInitializeError::TransportError { .. } => "the client is gone".to_owned(),
        _ => "the client and the server did not come together".to_owned(),
    }
}
