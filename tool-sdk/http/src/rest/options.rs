//! The options of a server with REST.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tool_sdk_core::internal::DynSessionStore;
use tool_sdk_core::{MemorySessionStore, Session, SessionStore};
use tool_sdk_mcp::{Server, ServerManager};

use super::client_profile::{ChatGptProfile, ClientProfile};
use super::workers::{WorkerLoad, WorkerLoadSource};
use crate::{ConsoleAccess, HttpOptions};

/// The options of a server with REST: who may use it, and what its sessions start with.
///
/// # Examples
///
/// ```
/// use tool_sdk::Session;
/// use tool_sdk::http::{HttpOptions, RestOptions, Token};
///
/// struct Shelf(Vec<String>);
///
/// let options = RestOptions::new(HttpOptions::new(Token::random()?))
///     .with_session(Session::default().with_service(Shelf(vec!["dictionary".to_owned()])));
/// # let _ = options;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct RestOptions {
    pub(crate) http: HttpOptions,
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) session: Session,
    pub(crate) session_setup: Option<Arc<dyn Fn(Session) -> Session + Send + Sync>>,
    pub(crate) session_store: Arc<dyn DynSessionStore>,
    pub(crate) mcp_server: Option<Server>,
    pub(crate) client_profiles: Vec<Arc<dyn ClientProfile>>,
    pub(crate) asks_approvers: bool,
    pub(crate) console: Option<ConsoleAccess>,
    pub(crate) server_manager: Option<ServerManager>,
    pub(crate) worker_load: Option<WorkerLoadSource>,
    pub(crate) max_running_calls: usize,
    pub(crate) session_idle_limit: Duration,
}

impl RestOptions {
    /// The default of [`max_running_calls`](Self::max_running_calls).
    pub const DEFAULT_MAX_RUNNING_CALLS: usize = 256;
    /// The default of [`session_idle_limit`](Self::session_idle_limit).
    pub const DEFAULT_SESSION_IDLE_LIMIT: Duration = Duration::from_hours(24);

    /// Returns options with the defaults for everything but the clients.
    #[must_use]
    pub fn new(http: HttpOptions) -> Self {
        Self {
            http,
            title: "Tools".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session: Session::default(),
            session_setup: None,
            session_store: Arc::new(MemorySessionStore::default()),
            mcp_server: None,
            client_profiles: vec![Arc::new(ChatGptProfile)],
            asks_approvers: true,
            console: None,
            server_manager: None,
            worker_load: None,
            max_running_calls: Self::DEFAULT_MAX_RUNNING_CALLS,
            session_idle_limit: Self::DEFAULT_SESSION_IDLE_LIMIT,
        }
    }

    /// Sets the name and the version of the API in its OpenAPI documents.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.title, self.version) = (name.into(), version.into());
        self
    }

    /// Sets what every session starts with: services, rules, folders.
    #[must_use]
    pub fn with_session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// Sets a callback that changes each new session, which has its id by then.
    #[must_use]
    pub fn with_session_setup(
        mut self,
        setup: impl Fn(Session) -> Session + Send + Sync + 'static,
    ) -> Self {
        self.session_setup = Some(Arc::new(setup));
        self
    }

    /// Sets where the history of sessions is kept; by default the last 1,000 calls in memory.
    #[must_use]
    pub fn with_session_store(mut self, store: impl SessionStore) -> Self {
        self.session_store = Arc::new(store);
        self
    }

    /// Sets the server that is mounted at `/mcp`, in place of one with the same pipeline and
    /// session.
    #[must_use]
    pub fn with_mcp_server(mut self, server: Server) -> Self {
        self.mcp_server = Some(server);
        self
    }

    /// Adds a kind of client with its own rendering of results over REST. The last one that applies
    /// counts; a client that none is for gets plain JSON.
    #[must_use]
    pub fn with_client_profile(mut self, profile: impl ClientProfile) -> Self {
        self.client_profiles.push(Arc::new(profile));
        self
    }

    /// Sets whether calls that need an approval wait for one over HTTP, if a token allows it; true
    /// by default. Otherwise such calls are denied, unless the pipeline has an approver.
    #[must_use]
    pub fn with_approvals(mut self, ask: bool) -> Self {
        self.asks_approvers = ask;
        self
    }

    /// Sets whose servers `GET /v1/servers` shows; there are none by default.
    #[must_use]
    pub fn with_server_manager(mut self, manager: ServerManager) -> Self {
        self.server_manager = Some(manager);
        self
    }

    /// Sets how `GET /v1/workers` asks the remote workers of the host; there are none by default.
    #[must_use]
    pub fn with_worker_load<F>(mut self, ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<WorkerLoad>> + Send + 'static,
    {
        self.worker_load = Some(Arc::new(move || Box::pin(ask())));
        self
    }

    /// Serves the console at `/`, for browsers that `access` signs in; there is none by default. Its
    /// page needs `/`, `/console/…` and the API at `/v1`.
    ///
    /// While a page of the console is open, or was within the last minute, calls that need an
    /// approval wait for it, and tools can ask its user.
    #[must_use]
    pub fn with_console(mut self, access: ConsoleAccess) -> Self {
        self.console = Some(access);
        self
    }

    /// Sets how many calls of one principal may run at the same time, 256 by default; a further one
    /// gets status 503.
    #[must_use]
    pub fn max_running_calls(mut self, max: usize) -> Self {
        self.max_running_calls = max.max(1);
        self
    }

    /// Sets how long a session may be idle before it ends, 24 hours by default.
    #[must_use]
    pub fn session_idle_limit(mut self, limit: Duration) -> Self {
        self.session_idle_limit = limit;
        self
    }
}

impl From<HttpOptions> for RestOptions {
    fn from(http: HttpOptions) -> Self {
        Self::new(http)
    }
}

impl fmt::Debug for RestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestOptions")
            .field("http", &self.http)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
