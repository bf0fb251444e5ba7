//! The MCP server.
//!
//! ```text
//! stdio · http ─▶ message ─▶ connection ─▶ dispatch        one path for every message
//!                                            ├▶ listing · ui · resource_adapter   answered at once
//!                                            └▶ call ─▶ pipeline ─▶ result        may wait
//!                                                 ├▶ event_relay                  progress and logs
//!                                                 ├▶ legacy_client · suspended_calls   questions
//!                                                 └▶ tasks                        collected later
//! response ─▶ message_sink ─▶ stdio · http
//! ```

mod approval_form;
mod batch;
mod call;
mod client_roots;
mod connection;
mod dispatch;
mod dyn_provider;
mod event_relay;
mod http;
mod in_flight;
mod input;
mod legacy_client;
mod listing;
mod log_threshold;
mod message;
mod message_sink;
mod outgoing_requests;
mod provider_chain;
mod request_context;
mod resource_adapter;
mod resources;
mod response;
mod result;
mod stdio;
mod subscriptions;
mod suspended_calls;
mod tasks;
mod tool_list_changes;
mod ui;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{Approver, Icon, Pipeline, Session};

use self::client_roots::RootsCallback;
use self::dyn_provider::{DynPromptProvider, DynResourceProvider};
pub use self::http::HttpService;
use self::listing::ToolListing;
use self::provider_chain::ProviderChain;
pub use self::resources::{
    PromptArgument, PromptDefinition, PromptProvider, ResourceDefinition, ResourceProvider,
};
pub use self::stdio::open_streams;
use self::suspended_calls::SuspendedCalls;
use self::tasks::TaskStore;
use self::ui::UiPage;
pub use self::ui::{chatgpt_result_meta, is_chatgpt};

/// Returns the approver for clients that cannot be asked, while there is one.
type FindApprover = Arc<dyn Fn() -> Option<Arc<dyn Approver>> + Send + Sync>;

/// Serves the tools of a pipeline over MCP.
///
/// Each connection is a session of its own. If the host set no approver, the client's user is
/// asked, provided that the client supports forms. For every other client an undecided call is
/// denied, and the denial says how to allow it.
///
/// Clients can run the calls of tools that declare it, with
/// [`TaskSupport`](tool_sdk_core::TaskSupport), as tasks, whose results they collect later.
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
    title: Option<String>,
    website: Option<String>,
    icons: Vec<Icon>,
    instructions: Option<String>,
    setup_session: Option<Arc<dyn Fn(Session) -> Session + Send + Sync>>,
    asks_client: bool,
    fallback_approver: Option<FindApprover>,
    resources: Option<Arc<dyn DynResourceProvider>>,
    prompts: Option<Arc<dyn DynPromptProvider>>,
    pages: Vec<UiPage>,
    roots_callback: Option<RootsCallback>,
    /// How long an event stream is open before its client asks for the rest.
    stream_polling: Option<Duration>,
    listing: Arc<ToolListing>,
    suspended_calls: Arc<SuspendedCalls>,
    tasks: Arc<TaskStore>,
    /// Warns once about services that the tools need and the host has not provided.
    setup_check: Arc<Once>,
    shutdown: CancellationToken,
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
            title: None,
            website: None,
            icons: Vec::new(),
            instructions: None,
            setup_session: None,
            asks_client: true,
            fallback_approver: None,
            resources: None,
            prompts: None,
            pages: Vec::new(),
            roots_callback: None,
            stream_polling: None,
            listing: Arc::default(),
            suspended_calls: Arc::default(),
            tasks: Arc::default(),
            setup_check: Arc::new(Once::new()),
            shutdown: CancellationToken::new(),
        }
    }

    /// Sets the server name and version that clients see.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (name.into(), version.into());
        self
    }

    /// Sets the name that clients show to people in place of the server name.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the address of a page about the server, which clients may show.
    #[must_use]
    pub fn with_website(mut self, url: impl Into<String>) -> Self {
        self.website = Some(url.into());
        self
    }

    /// Adds an icon of the server, for clients that show one. All of them support PNG and JPEG, most
    /// of them SVG. Clients see it when they begin, and not with each result.
    #[must_use]
    pub fn with_icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
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

    /// Closes the response of a long call over HTTP after this time, so that clients poll: a client asks
    /// for the rest of the event stream with `Last-Event-ID`, three seconds later. The call goes on
    /// meanwhile. By default a response is open until the call ends.
    ///
    /// Set it where a proxy closes long responses although they are never idle for more than 15 seconds.
    /// Only clients from 2025-11-25 on in a session poll; the others are not affected.
    #[must_use]
    pub fn with_stream_polling(mut self, limit: Duration) -> Self {
        self.stream_polling = Some(limit);
        self
    }

    /// Sets a callback that changes the session of each call by the folders that the client says it
    /// works in (roots), such as to let tools read them. Without one, clients are not asked.
    ///
    /// A client is a model and not a user, so the callback should give nothing but reading, and refuse
    /// folders with secrets. Only clients at two streams are asked, because the folders of others may be
    /// on another computer. Clients of 2026-07-28 are asked by the first call and again after a minute. At
    /// most 32 folders are used.
    #[must_use]
    pub fn with_client_roots(
        mut self,
        apply: impl Fn(Session, &[PathBuf]) -> Session + Send + Sync + 'static,
    ) -> Self {
        self.roots_callback = Some(Arc::new(apply));
        self
    }

    /// Sets whether the client's user is asked for approvals if the host set no approver; true by
    /// default. Without an approver, a call that needs approval is denied.
    #[must_use]
    pub fn with_client_approvals(mut self, ask: bool) -> Self {
        self.asks_client = ask;
        self
    }

    /// Sets who approves the calls of a client that cannot be asked: `find` is called for each
    /// request, and returns nothing while no person is there.
    #[doc(hidden)]
    #[must_use]
    pub fn with_fallback_approver(
        mut self,
        find: impl Fn() -> Option<Arc<dyn Approver>> + Send + Sync + 'static,
    ) -> Self {
        self.fallback_approver = Some(Arc::new(find));
        self
    }

    /// Sets a token that shuts the server down: nothing more is read from a client at two streams,
    /// running calls have five seconds to end, as when the client disconnects, and streams that only
    /// wait for changes end. For HTTP, `HttpOptions::shut_down_on` does this and ends serving.
    #[must_use]
    pub fn with_shutdown(mut self, token: CancellationToken) -> Self {
        self.shutdown = token;
        self
    }

    /// Serves the resources of this provider, after those of providers that were added before. Of
    /// several providers that report changes, the first one counts.
    #[must_use]
    pub fn with_resources(mut self, resources: impl ResourceProvider) -> Self {
        let second: Arc<dyn DynResourceProvider> = Arc::new(resources);
        self.resources = Some(match self.resources.take() {
            Some(first) => Arc::new(ProviderChain { first, second }),
            None => second,
        });
        self
    }

    /// Serves the prompts of this provider, after those of providers that were added before. Of
    /// several providers that report changes, the first one counts.
    #[must_use]
    pub fn with_prompts(mut self, prompts: impl PromptProvider) -> Self {
        let second: Arc<dyn DynPromptProvider> = Arc::new(prompts);
        self.prompts = Some(match self.prompts.take() {
            Some(first) => Arc::new(ProviderChain { first, second }),
            None => second,
        });
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
        let session = match &self.setup_session {
            Some(equip) => equip(session),
            None => session,
        };
        self.setup_check.call_once(|| {
            for missing in self.pipeline.check_setup(&session) {
                tracing::warn!("{missing}");
            }
        });
        session
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
    /// Fails when the client does not begin as the protocol requires.
    pub fn serve_stdio(&self) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let server = self.clone();
        async move {
            let (read, write) = open_streams()?;
            server.serve(read, write).await
        }
    }

    /// Serves the client at the other end of two streams, one message per line, until it
    /// disconnects. Running calls then have five seconds to end.
    ///
    /// # Errors
    ///
    /// Fails when the client does not begin as the protocol requires.
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
        stdio::serve_streams(server, read, write)
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
