//! The configured servers of a host, and their tools in one toolset.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::join_all;
use serde_json::{Map, Value};
use tool_sdk_core::internal::DefinitionDiff;
use tool_sdk_core::{Context, Pipeline, Session, ToolAudience, ToolError, ToolPins, Toolset};

use super::authorization::{
    AuthorizationError, AuthorizationPrompt, CredentialStore, LogoutOutcome, ManagerAuthorization,
};
use super::config::{InvalidServerConfig, ServerConfig};
use super::connection::ServerConnection;
use super::naming;
use super::offer_changes::OfferChannels;
use super::remote::{RemoteError, RemotePrompt, RemoteResource, RemoteTool};
use super::status::ServerStatus;
use super::tool_index::ToolNameIndex;

/// The servers whose tools a pipeline has beside its own.
///
/// Their tools work like any other: a model calls them by name; rules, hooks and limits apply.
/// Every call asks for approval unless a rule allows it. A tool that was not yet run in its current
/// definition asks under the permission `mcp_definition`, and the prompt shows what changed.
///
/// Cheap to clone; clones share the servers. Create it after the pipeline is set up: a later setter
/// of the pipeline replaces the toolset.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::{Action, Call, Pipeline, Registry, Rule, Session, mcp};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let trusted = Rule::parse(Action::Allow, "mcp(time/*)")?;
/// let unseen = Rule::parse(Action::Allow, "mcp_definition(time/*)")?;
/// let pipeline = Pipeline::new(Registry::default()).rules([trusted, unseen]);
///
/// let servers = mcp::ServerManager::for_pipeline(&pipeline);
/// let time = mcp::ServerCommand::new("mcp-server-time", ["--local-timezone", "UTC"]);
/// servers.add(mcp::ServerConfig::new("time", time)?)?;
/// servers.connect("time").await?;
///
/// let call = Call::new("mcp__time__get_current_time", r#"{"timezone": "UTC"}"#);
/// println!("{}", pipeline.call(&Session::default(), call).await.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServerManager(Arc<Inner>);

struct Inner {
    toolset: Mutex<Arc<Toolset>>,
    pins: Mutex<ToolPins>,
    authorization: Mutex<ManagerAuthorization>,
    tool_index: ToolNameIndex,
    offer_channels: OfferChannels,
    /// Who has the tools.
    audience: ToolAudience,
    /// The servers of the host, for a manager of one session.
    base: Option<ServerManager>,
    connections: Mutex<BTreeMap<String, Arc<ServerConnection>>>,
}

impl fmt::Debug for ServerManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock_connections().values()).finish()
    }
}

impl ServerManager {
    /// Returns a manager without servers, whose tools will be added to those of `pipeline`.
    #[must_use]
    pub fn for_pipeline(pipeline: &Pipeline) -> Self {
        let manager = Self::new(pipeline.shared_toolset(), ToolPins::in_memory());
        manager.close_with(pipeline);
        manager
    }

    /// Closes the connections when `pipeline` is [closed](Pipeline::close), as those of
    /// [`for_pipeline`](Self::for_pipeline) are.
    pub fn close_with(&self, pipeline: &Pipeline) {
        let servers = Arc::downgrade(&self.0);
        pipeline.on_close("MCP servers", async move || {
            if let Some(inner) = servers.upgrade() {
                Self(inner).shut_down().await;
            }
        });
    }

    /// Returns the servers that a call may add and use: these, or those of the call's session when
    /// several clients share the server of the call.
    ///
    /// The manager of a session also finds the servers of this one, and closes its own with the
    /// session. No other session sees or calls the tools of its servers, and neither pinned
    /// definitions nor names are shared.
    #[must_use]
    pub fn for_call(&self, cx: &Context) -> Self {
        if !cx.session().has_shared_server() {
            return self.clone();
        }
        let own = cx.session().extension::<SessionServers>();
        let own = own.0.get_or_init(|| self.for_session(cx.session()));
        let servers = Arc::downgrade(&own.0);
        cx.on_close("MCP servers", async move || {
            if let Some(inner) = servers.upgrade() {
                Self(inner).shut_down().await;
            }
        });
        own.clone()
    }

    fn for_session(&self, session: &Session) -> Self {
        Self(Arc::new(Inner {
            toolset: Mutex::new(self.toolset()),
            pins: Mutex::new(ToolPins::in_memory()),
            // Tokens of the host are not those of a client's servers.
            authorization: Mutex::default(),
            tool_index: ToolNameIndex::default(),
            offer_channels: OfferChannels::default(),
            audience: ToolAudience::session(session),
            base: Some(self.clone()),
            connections: Mutex::default(),
        }))
    }

    /// Stores pinned definitions in `pins`; in memory by default. Servers that were added before are
    /// dropped.
    #[must_use]
    pub fn with_pins(self, pins: ToolPins) -> Self {
        self.close();
        *self.0.pins.lock().unwrap_or_else(PoisonError::into_inner) = pins;
        self
    }

    /// Stores the tokens of servers in `credentials`; in memory by default. Servers that were added
    /// before are dropped.
    #[must_use]
    pub fn with_credentials(self, credentials: CredentialStore) -> Self {
        self.close();
        self.lock_authorization().credentials = credentials;
        self
    }

    /// Sets the command that messages to the user name, `mcp` by default: followed by `login` and the
    /// name of a server it authorizes the server, and followed by `inspect` it shows the tools of the
    /// server. Servers that were added before are dropped.
    #[must_use]
    pub fn with_mcp_command(self, command: impl Into<String>) -> Self {
        self.close();
        self.lock_authorization().mcp_command = command.into();
        self
    }

    fn lock_authorization(&self) -> MutexGuard<'_, ManagerAuthorization> {
        self.0.authorization.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[doc(hidden)]
    pub fn new(toolset: Arc<Toolset>, pins: ToolPins) -> Self {
        let (toolset, tool_index) = (Mutex::new(toolset), ToolNameIndex::default());
        let (pins, connections) = (Mutex::new(pins), Mutex::default());
        let (audience, base) = (ToolAudience::everyone(), None);
        let offer_channels = OfferChannels::default();
        Self(Arc::new(Inner {
            toolset,
            pins,
            authorization: Mutex::default(),
            tool_index,
            offer_channels,
            audience,
            base,
            connections,
        }))
    }

    /// Publishes the tools in `toolset` from now on, instead of the current one.
    #[doc(hidden)]
    pub fn attach_toolset(&self, toolset: &Arc<Toolset>) {
        *self.0.toolset.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(toolset);
        self.lock_connections().values().for_each(|connection| connection.attach_toolset(toolset));
    }

    fn toolset(&self) -> Arc<Toolset> {
        Arc::clone(&self.0.toolset.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a server. Nothing is started yet.
    ///
    /// # Errors
    ///
    /// Fails when the name of another server is equal to this one after `-` is replaced by `_`.
    pub fn add(&self, config: ServerConfig) -> Result<(), InvalidServerConfig> {
        self.0.base.as_ref().map_or(Ok(()), |base| base.check_name(&config))?;
        let mut connections = self.lock_connections();
        check_name_unused(&connections, config.name())?;
        let audience = self.0.audience.clone();
        let pins = self.0.pins.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let authorization = self.lock_authorization().clone();
        let connection = ServerConnection::new(
            config,
            &self.toolset(),
            audience,
            pins,
            self.0.tool_index.clone(),
            self.0.offer_channels.clone(),
            &authorization,
        );
        connections.insert(connection.name().to_owned(), connection);
        Ok(())
    }

    /// Checks whether [`add`](Self::add) would accept the name of this server.
    ///
    /// # Errors
    ///
    /// Fails when the name of another server is equal to this one after `-` is replaced by `_`.
    pub fn check_name(&self, config: &ServerConfig) -> Result<(), InvalidServerConfig> {
        self.0.base.as_ref().map_or(Ok(()), |base| base.check_name(config))?;
        check_name_unused(&self.lock_connections(), config.name())
    }

    /// Connects to a server, unless it is connected, and adds its tools.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, or when it does not answer in time.
    pub async fn connect(&self, server: &str) -> Result<ServerStatus, RemoteError> {
        let connection = self.find_connection(server)?;
        connection.connect().await?;
        Ok(connection.status())
    }

    /// Lets the user authorize a server over HTTP by OAuth, and stores the tokens. What the server
    /// asked for last is requested, so connect first, and again after this.
    ///
    /// Only a host calls it, for a user who asked for it: a call that needs authorization fails with
    /// [`RemoteError::needs_authorization`](super::RemoteError) and starts nothing.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, when nothing of OAuth applies to it, when its metadata
    /// cannot be used, or when the user or the authorization server refuses.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use tool_sdk::mcp::{AuthorizationPrompt, RemoteError, ServerManager};
    ///
    /// async fn connect(
    ///     servers: &ServerManager,
    ///     prompt: &impl AuthorizationPrompt,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     match servers.connect("notes").await {
    ///         Err(error) if error.needs_authorization => servers.authorize("notes", prompt).await?,
    ///         connected => return Ok(connected.map(drop)?),
    ///     }
    ///     servers.connect("notes").await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn authorize<P: AuthorizationPrompt>(
        &self,
        server: &str,
        prompt: &P,
    ) -> Result<(), AuthorizationError> {
        self.find_authorized(server)?.authorize(prompt).await
    }

    /// Revokes the tokens of a server, deletes them, and closes the connection.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, when nothing of OAuth applies to it, or when the tokens
    /// cannot be revoked; then they are deleted nevertheless.
    pub async fn log_out(&self, server: &str) -> Result<LogoutOutcome, AuthorizationError> {
        self.find_authorized(server)?.log_out().await
    }

    fn find_authorized(&self, server: &str) -> Result<Arc<ServerConnection>, AuthorizationError> {
        let unknown = |_| {
            let server = server.escape_debug().take(80).collect();
            AuthorizationError::UnknownServer(server)
        };
        self.find_connection(server).map_err(unknown)
    }

    /// Connects to all enabled servers concurrently; returns those that failed, with the error.
    pub async fn connect_all(&self) -> Vec<(String, RemoteError)> {
        let mut connections = self.all_connections();
        connections.retain(|connection| connection.is_enabled());
        let connected = join_all(connections.iter().map(|connection| connection.connect())).await;
        let failed = |(connection, connected): (&Arc<ServerConnection>, Result<_, _>)| {
            Some((connection.name().to_owned(), connected.err()?))
        };
        connections.iter().zip(connected).filter_map(failed).collect()
    }

    /// Pins every tool of a server as it is described now.
    ///
    /// Call it only after a person has reviewed the definitions.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, or when the pins cannot be stored.
    pub fn trust_tools(&self, server: &str) -> Result<(), ToolError> {
        self.find_connection(server).map_err(|error| ToolError::not_found(error.message))?.pin_all()
    }

    /// Returns what [`trust`](Self::trust_tools) would pin of each tool of a server, as readable text.
    #[doc(hidden)]
    pub fn pin_texts(&self, server: &str) -> BTreeMap<String, String> {
        self.find_connection(server).map(|connection| connection.pin_texts()).unwrap_or_default()
    }

    /// Returns how the tools of a server differ from the definitions that the host pinned; tools
    /// without a difference are left out.
    #[doc(hidden)]
    pub fn pin_differences(&self, server: &str) -> BTreeMap<String, DefinitionDiff> {
        let found = self.find_connection(server);
        found.map(|connection| connection.pin_differences()).unwrap_or_default()
    }

    /// Like [`trust`](Self::trust_tools), but only if `shown` is what the server says now; returns whether
    /// it is.
    #[doc(hidden)]
    pub fn trust_reviewed(
        &self,
        server: &str,
        shown: &BTreeMap<String, String>,
    ) -> Result<bool, ToolError> {
        self.find_connection(server)
            .map_err(|error| ToolError::not_found(error.message))?
            .pin_reviewed(shown)
    }

    /// Closes the connection to a server and removes its tools; returns whether it was known.
    pub fn remove(&self, server: &str) -> bool {
        let connection = self.lock_connections().remove(server);
        connection.inspect(|connection| connection.close()).is_some()
    }

    /// Closes every connection and removes all servers and their tools.
    pub fn close(&self) {
        let connections = std::mem::take(&mut *self.lock_connections());
        connections.values().for_each(|connection| connection.close());
    }

    /// Like [`close`](Self::close), and waits until every server that was started has ended: its
    /// standard input is closed, and if it does not exit in time, it is ended. The servers end at the
    /// same time.
    pub async fn shut_down(&self) {
        let connections = std::mem::take(&mut *self.lock_connections());
        join_all(connections.values().map(|connection| connection.shut_down())).await;
    }

    /// Lists the tools of a server as it describes them. None of it is trustworthy.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, or when it does not answer.
    pub async fn list_tools(&self, server: &str) -> Result<Vec<RemoteTool>, RemoteError> {
        self.find_connection(server)?.list_tools().await
    }

    /// Lists the resources of a server, and the templates of further ones, as it describes them. None
    /// of it is trustworthy.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, or when it does not answer.
    pub async fn list_resources(&self, server: &str) -> Result<Vec<RemoteResource>, RemoteError> {
        self.find_connection(server)?.list_resources().await
    }

    /// Lists the prompts of a server as it describes them. None of it is trustworthy.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, or when it does not answer.
    pub async fn list_prompts(&self, server: &str) -> Result<Vec<RemotePrompt>, RemoteError> {
        self.find_connection(server)?.list_prompts().await
    }

    /// Returns the messages of a server's prompt, in the protocol's form.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server or prompt, or when an argument is missing.
    pub async fn get_prompt(
        &self,
        server: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, RemoteError> {
        self.find_connection(server)?.get_prompt(name, arguments).await
    }

    /// Returns what a connected server says about how it is used. It is not trustworthy: show it as the
    /// server's words.
    #[must_use]
    pub fn instructions(&self, server: &str) -> Option<String> {
        self.find_connection(server).ok()?.instructions()
    }

    /// Reads a resource of a server, in the protocol's form.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server or resource.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Value, RemoteError> {
        self.find_connection(server)?.read_resource(uri).await
    }

    /// Subscribes to changes of a server's resource, also after the server is connected again; see
    /// [`ForeignResources`](super::ForeignResources), which announces them.
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, or when it does not notify changes of resources. The
    /// subscription counts nevertheless, until [`unwatch_resource`](Self::unwatch_resource).
    pub async fn watch_resource(&self, server: &str, uri: &str) -> Result<(), RemoteError> {
        self.find_connection(server)?.watch_resource(uri).await
    }

    /// Ends a subscription of [`watch_resource`](Self::watch_resource).
    ///
    /// # Errors
    ///
    /// Fails when there is no such server, or when it does not answer.
    pub async fn unwatch_resource(&self, server: &str, uri: &str) -> Result<(), RemoteError> {
        self.find_connection(server)?.unwatch_resource(uri).await
    }

    pub(super) fn offer_channels(&self) -> &OfferChannels {
        &self.0.offer_channels
    }

    /// Returns the state of a server.
    #[must_use]
    pub fn status(&self, server: &str) -> Option<ServerStatus> {
        self.find_connection(server).ok().map(|connection| connection.status())
    }

    /// Returns the state of every server, by name.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.all_connections().iter().map(|connection| connection.status()).collect()
    }

    pub(super) fn find_connection(
        &self,
        server: &str,
    ) -> Result<Arc<ServerConnection>, RemoteError> {
        if let Some(known) = self.lock_connections().get(server) {
            return Ok(Arc::clone(known));
        }
        if let Some(base) = &self.0.base {
            return base.find_connection(server);
        }
        let server: String = server.escape_debug().take(80).collect();
        Err(RemoteError::connection(format_args!("unknown server `{server}`")))
    }

    /// Returns the connections of this manager and those of the host, by name.
    fn all_connections(&self) -> Vec<Arc<ServerConnection>> {
        let mut all: Vec<_> = self.lock_connections().values().cloned().collect();
        if let Some(base) = &self.0.base {
            all.extend(base.all_connections());
            all.sort_by(|a, b| a.name().cmp(b.name()));
        }
        all
    }

    fn lock_connections(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ServerConnection>>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The servers that a session added, when several clients share the server.
#[derive(Clone, Default)]
struct SessionServers(Arc<OnceLock<ServerManager>>);

/// Fails when another server has the same sanitized name.
fn check_name_unused(
    connections: &BTreeMap<String, Arc<ServerConnection>>,
    name: &str,
) -> Result<(), InvalidServerConfig> {
    let plain = naming::sanitize_name(name);
    match connections.keys().find(|taken| naming::sanitize_name(taken) == plain) {
        Some(taken) => Err(InvalidServerConfig {
            subject: "the server",
            value: name.to_owned(),
            problem: format!(
                "the server `{taken}` has the same name, as `-` and `_` are equal in tool names"
            ),
        }),
        None => Ok(()),
    }
}
