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

mod ask;
mod batch;
mod call;
mod changes;
pub(in crate::surface) mod client;
mod connection;
mod direct;
mod http;
mod input;
mod library;
mod listing;
mod message;
mod offer;
mod page;
mod parked;
mod relay;
mod resources;
mod result;
mod stdio;
#[cfg(test)]
mod tests;
mod user;

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
pub use self::http::{Http, InvalidToken, Listener, Principal, Socket, Token};
use self::listing::Listing;
pub use self::offer::{Prompt, PromptArgument, Prompts, Resource, Resources, Work};
use self::page::Page;
use self::parked::Parked;
pub use self::resources::{CacheStats, Previews, ResourceCache};
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
    equip: Option<Arc<dyn Fn(Session) -> Session + Send + Sync>>,
    asks_peers: bool,
    answers_directly: bool,
    resources: Option<Arc<dyn Resources>>,
    prompts: Option<Arc<dyn Prompts>>,
    pages: Vec<Page>,
    listing: Arc<Listing>,
    parked: Arc<Parked>,
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
            equip: None,
            asks_peers: true,
            answers_directly: true,
            resources: None,
            prompts: None,
            pages: Vec::new(),
            listing: Arc::default(),
            parked: Arc::default(),
        }
    }

    /// Sets what peers are told that they talk to.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (name.into(), version.into());
        self
    }

    /// Changes the session of every connection, which has its id by then.
    #[must_use]
    pub fn equipping(mut self, equip: impl Fn(Session) -> Session + Send + Sync + 'static) -> Self {
        self.equip = Some(Arc::new(equip));
        self
    }

    /// Sets whether the peer's user is asked where the host named nobody; true unless set.
    /// Without anybody to ask, what would be asked is denied.
    #[must_use]
    pub fn asking_peers(mut self, ask: bool) -> Self {
        self.asks_peers = ask;
        self
    }

    /// Sets whether pings, lists and calls are answered without a detour; true unless set. Over
    /// two streams peers see no difference. Over HTTP an answer that nothing goes before comes
    /// as JSON, where it would come in a stream of events; both are what the protocol knows.
    #[must_use]
    pub fn answering_directly(mut self, directly: bool) -> Self {
        self.answers_directly = directly;
        self
    }

    /// Serves these resources beside the tools.
    #[must_use]
    pub fn with_resources(mut self, resources: impl Resources) -> Self {
        self.resources = Some(Arc::new(resources));
        self
    }

    /// Serves these prompts beside the tools.
    #[must_use]
    pub fn with_prompts(mut self, prompts: impl Prompts) -> Self {
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
        self.pages.push(Page { uri: uri.into(), name: name.into(), html: html.into() });
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
        match &self.equip {
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
            let (read, write) = stdio::streams()?;
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
            let (behind, opened) = direct::front(read, write, pipeline, listing);
            speak(Connection::new(server)?.opening(&opened), behind).await
        })
    }

    /// Serves everybody who knows the token, over streamable HTTP at `/mcp`: at a TCP listener, or
    /// at a [`Socket`], whose clients say that they want `localhost`.
    ///
    /// # Errors
    ///
    /// Fails when connections cannot be accepted.
    pub fn serve_http<L: Into<Listener>>(
        &self,
        listener: L,
        http: Http,
    ) -> impl Future<Output = io::Result<()>> + Send + use<L> {
        let mut server = self.clone();
        if http.has_principals() {
            server.session = server.session.among_many();
        }
        http::serve(Arc::new(server), listener.into(), http)
    }
}

/// Speaks the protocol with one peer, until it hangs up.
async fn speak(
    connection: Connection,
    peer: impl Transport<RoleServer> + 'static,
) -> io::Result<()> {
    match serve_server(connection, peer).await {
        Ok(service) => service.waiting().await.map(drop).map_err(io::Error::other),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, unbegun(&error))),
    }
}

/// Why nothing began, in a sentence.
fn unbegun(error: &ServerInitializeError) -> String {
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
