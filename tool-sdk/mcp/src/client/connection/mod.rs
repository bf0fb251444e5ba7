//! The connection to one server and its state; the tools that it offers are in [`tool_listing`].
//!
//! A connection is opened on first use, and reopened on use after it was lost, with backoff and at
//! most five times in five minutes.
//!
//! **Invariant:** no call is sent twice: a call that was lost is not retried. A server that was
//! removed is not reconnected, even while some of its tools are still referenced.

mod tool_listing;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_sdk_core::{Tool, ToolAudience, ToolPins, Toolset};

use super::authorization::{
    AuthorizationError, AuthorizationPrompt, LogoutOutcome, ManagerAuthorization, TokenSource,
};
use super::config::{AnnotationTrust, ServerConfig};
use super::offer_changes::{OfferChannels, WatchCounts};
use super::remote::{
    ErrorClass, OfferChange, RemoteConnection, RemoteError, RemoteFuture, RemotePrompt,
    RemoteResource, RemoteTool,
};
use super::secret_filter::SecretFilter;
use super::server_requests::ClientFeatures;
use super::status::ServerStatus;
use super::tool::ForeignTool;
use super::tool_index::ToolNameIndex;
use super::transport;

/// How many connections may be opened within [`ATTEMPT_WINDOW`].
const MAX_ATTEMPTS: usize = 5;
const ATTEMPT_WINDOW: Duration = Duration::from_secs(300);

/// The delay before the second attempt; it doubles with each further one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(250);

/// The longest error message, in characters.
const MAX_ERROR_CHARS: usize = 1000;

/// A call ends after an hour, or after twelve times its timeout if that is longer, even while the
/// server reports progress.
const MIN_CALL_LIMIT: Duration = Duration::from_secs(3600);
const CALL_TIMEOUT_FACTOR: u32 = 12;

/// The warning while a server has lost validation.
const LOST_VALIDATION: &str = "validating took too long, so nothing that its tools send or receive \
                               is validated until it is connected again";

/// One server.
pub(super) struct ServerConnection {
    config: ServerConfig,
    /// Where the tools are published. Weak, because its owner owns this connection as well.
    toolset: Mutex<Weak<Toolset>>,
    /// Who has the tools.
    audience: ToolAudience,
    pins: ToolPins,
    tool_index: ToolNameIndex,
    /// Where changes of resources and prompts are announced.
    offer_channels: OfferChannels,
    watched: WatchCounts,
    secrets: SecretFilter,
    /// The tokens of OAuth; `None` where nothing of it applies.
    tokens: Option<Arc<TokenSource>>,
    /// The command that has `login` and `inspect`, for messages to the user.
    pub(super) mcp_command: String,
    state: Mutex<State>,
    /// Held while the toolset is changed, so that the last listing wins.
    publish_lock: Mutex<()>,
    /// Held while a connection is opened, so that concurrent callers share it.
    connect_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<LiveConnection>,
    /// Whether the host has removed the server.
    is_removed: bool,
    tools: Vec<ForeignTool>,
    /// The tools as they were added to the toolset.
    published: Vec<Arc<dyn Tool>>,
    attempts: VecDeque<Instant>,
    last_error: Option<String>,
    /// Why there is no connection, where that is known.
    disconnect_reason: Option<String>,
    stderr: String,
    /// Which tools are left out, and why.
    warnings: Vec<String>,
    has_lost_validation: bool,
}

#[derive(Clone)]
struct LiveConnection {
    remote: Arc<dyn RemoteConnection>,
    /// Stops watching for changed tools when the last clone is dropped.
    _watch_guard: Arc<DropGuard>,
}

impl fmt::Debug for ServerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerConnection").field(&self.config).finish()
    }
}

/// Configuration.
impl ServerConnection {
    pub(super) fn new(
        config: ServerConfig,
        toolset: &Arc<Toolset>,
        audience: ToolAudience,
        pins: ToolPins,
        tool_index: ToolNameIndex,
        offer_channels: OfferChannels,
        authorization: &ManagerAuthorization,
    ) -> Arc<Self> {
        let tokens = authorization.token_source(&config.transport);
        let secrets = SecretFilter::for_transport(&config.transport, tokens.clone());
        let mcp_command = authorization.mcp_command.clone();
        Arc::new(Self {
            config,
            secrets,
            tokens,
            mcp_command,
            toolset: Mutex::new(Arc::downgrade(toolset)),
            audience,
            pins,
            tool_index,
            offer_channels,
            watched: WatchCounts::default(),
            state: Mutex::default(),
            publish_lock: Mutex::default(),
            connect_lock: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn name(&self) -> &str {
        self.config.name()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.config.enabled
    }

    pub(super) fn transport_identity(&self) -> Value {
        self.config.transport.identity()
    }

    /// Whether validating took too long since the server was connected; nothing is validated then.
    pub(super) fn has_lost_validation(&self) -> bool {
        self.lock_state().has_lost_validation
    }

    /// Turns validation off until the server is connected again.
    pub(super) fn lose_validation(&self) {
        self.lock_state().has_lost_validation = true;
    }

    pub(super) fn pins(&self) -> &ToolPins {
        &self.pins
    }

    pub(super) fn call_timeout(&self) -> Duration {
        self.config.call_timeout
    }

    pub(super) fn secrets(&self) -> &SecretFilter {
        &self.secrets
    }

    pub(super) fn annotation_trust(&self) -> AnnotationTrust {
        self.config.trust
    }

    pub(super) fn client_features(&self) -> &ClientFeatures {
        &self.config.client_features
    }

    /// How long a call may take in all, while the server reports progress.
    pub(super) fn max_call_duration(&self) -> Duration {
        MIN_CALL_LIMIT.max(self.config.call_timeout.saturating_mul(CALL_TIMEOUT_FACTOR))
    }
}

/// Connecting.
impl ServerConnection {
    /// Returns the live connection, or opens one.
    pub(super) async fn connect(
        self: &Arc<Self>,
    ) -> Result<Arc<dyn RemoteConnection>, RemoteError> {
        if let Some(remote) = self.live_remote() {
            return Ok(remote);
        }
        let _turn = self.connect_lock.lock().await;
        match self.live_remote() {
            Some(remote) => Ok(remote),
            None => {
                if !self.is_enabled() {
                    return Err(RemoteError::connection("it is switched off").not_run());
                }
                // A refused attempt is not recorded: it is not a failure of the server, and repeats the last one.
                let (attempt, wait) = self.begin_attempt()?;
                let connected = self.open_connection(attempt, wait).await;
                connected.map_err(|error| self.record_failure(error))
            }
        }
    }

    /// Lists the tools as the server describes them now.
    pub(super) async fn list_tools(self: &Arc<Self>) -> Result<Vec<RemoteTool>, RemoteError> {
        let remote = self.connect().await?;
        let listed = with_timeout(self.config.startup_timeout, remote.list_tools()).await;
        listed.map_err(|error| self.record_failure(error))
    }

    /// Reads a resource.
    pub(super) async fn read_resource(self: &Arc<Self>, uri: &str) -> Result<Value, RemoteError> {
        let remote = self.connect().await?;
        let read = with_timeout(self.call_timeout(), remote.read_resource(uri)).await;
        read.map_err(|error| self.record_failure(error))
    }

    /// Lists the resources as the server describes them now.
    pub(super) async fn list_resources(
        self: &Arc<Self>,
    ) -> Result<Vec<RemoteResource>, RemoteError> {
        let remote = self.connect().await?;
        let listed = with_timeout(self.call_timeout(), remote.list_resources()).await;
        listed.map_err(|error| self.record_failure(error))
    }

    /// Lists the prompts as the server describes them now.
    pub(super) async fn list_prompts(self: &Arc<Self>) -> Result<Vec<RemotePrompt>, RemoteError> {
        let remote = self.connect().await?;
        let listed = with_timeout(self.call_timeout(), remote.list_prompts()).await;
        listed.map_err(|error| self.record_failure(error))
    }

    /// Returns the messages of a prompt.
    pub(super) async fn get_prompt(
        self: &Arc<Self>,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, RemoteError> {
        let remote = self.connect().await?;
        let got = with_timeout(self.call_timeout(), remote.get_prompt(name, arguments)).await;
        got.map_err(|error| self.record_failure(error))
    }

    /// Subscribes to changes of a resource, also after the server is connected again.
    pub(super) async fn watch_resource(&self, uri: &str) -> Result<(), RemoteError> {
        match (self.watched.add(uri), self.live_remote()) {
            (true, Some(remote)) => {
                with_timeout(self.call_timeout(), remote.watch_resource(uri)).await
            }
            _ => Ok(()),
        }
    }

    /// Ends a subscription.
    pub(super) async fn unwatch_resource(&self, uri: &str) -> Result<(), RemoteError> {
        match (self.watched.remove(uri), self.live_remote()) {
            (true, Some(remote)) => {
                with_timeout(self.call_timeout(), remote.unwatch_resource(uri)).await
            }
            _ => Ok(()),
        }
    }

    /// Returns the instructions of the server, if it is connected.
    pub(super) fn instructions(&self) -> Option<String> {
        self.live_remote()?.instructions()
    }

    fn live_remote(&self) -> Option<Arc<dyn RemoteConnection>> {
        let state = self.lock_state();
        let remote = &state.connection.as_ref()?.remote;
        (!remote.is_closed()).then(|| Arc::clone(remote))
    }

    async fn open_connection(
        self: &Arc<Self>,
        attempt: ConnectAttempt<'_>,
        wait: Duration,
    ) -> Result<Arc<dyn RemoteConnection>, RemoteError> {
        sleep(wait).await;
        if self.lock_state().is_removed {
            return Err(server_removed_error());
        }
        let limit = self.config.startup_timeout;
        let late =
            |_| RemoteError::timeout(format_args!("the server did not get ready within {limit:?}"));
        let connected = async {
            let remote = transport::open_transport(&self.config, self.tokens.as_ref()).await?;
            let listed = remote.list_tools().await;
            let tools = listed.map_err(|error| error.with_stderr(remote.stderr_tail()))?;
            let made = self.prepare_tools(&tools).await?;
            Ok((remote, made))
        };
        let connected = timeout(limit, connected).await;
        attempt.keep();
        let (remote, made) = connected.map_err(late)??;
        let gone = CancellationToken::new();
        let connection = LiveConnection {
            remote: Arc::clone(&remote),
            _watch_guard: Arc::new(gone.clone().drop_guard()),
        };
        {
            let mut state = self.lock_state();
            if state.is_removed {
                return Err(server_removed_error());
            }
            state.connection = Some(connection);
            state.disconnect_reason = None;
            state.has_lost_validation = false;
        }
        self.publish_tools(&remote, made);
        let watch = tool_listing::watch_tool_changes(Arc::downgrade(self), Arc::clone(&remote));
        tokio::spawn(gone.clone().run_until_cancelled_owned(watch));
        let watch = watch_offer_changes(Arc::downgrade(self), Arc::clone(&remote));
        tokio::spawn(gone.run_until_cancelled_owned(watch));
        Ok(remote)
    }

    /// Registers an attempt to connect, and returns the delay before it.
    ///
    /// # Errors
    ///
    /// Fails when there were too many attempts within [`ATTEMPT_WINDOW`].
    fn begin_attempt(&self) -> Result<(ConnectAttempt<'_>, Duration), RemoteError> {
        let mut state = self.lock_state();
        let now = Instant::now();
        while state.attempts.front().is_some_and(|at| now.duration_since(*at) > ATTEMPT_WINDOW) {
            state.attempts.pop_front();
        }
        let count = state.attempts.len();
        if count >= MAX_ATTEMPTS {
            let since = state.attempts.front().map_or(ATTEMPT_WINDOW, |at| now.duration_since(*at));
            let rest = ATTEMPT_WINDOW.saturating_sub(since).as_secs();
            let why = state.disconnect_reason.as_deref().unwrap_or("it disconnected");
            return Err(RemoteError::connection(format_args!(
                "it was started {count} times in five minutes; the next attempt is possible in {rest} s: {why}"
            )));
        }
        state.attempts.push_back(now);
        let doubled = count.checked_sub(1).map_or(0, |again| 1 << again);
        Ok((ConnectAttempt(self), INITIAL_BACKOFF * doubled))
    }

    /// Lets the user authorize the server.
    pub(super) async fn authorize<P: AuthorizationPrompt>(
        &self,
        prompt: &P,
    ) -> Result<(), AuthorizationError> {
        self.token_source()?.authorize(self.name(), prompt).await?;
        // The attempts without a token say nothing about the server.
        self.lock_state().attempts.clear();
        Ok(())
    }

    /// Revokes and deletes the tokens, and closes the connection that used them.
    pub(super) async fn log_out(&self) -> Result<LogoutOutcome, AuthorizationError> {
        let outcome = self.token_source()?.log_out().await;
        let connection = self.lock_state().connection.take();
        if let Some(connection) = connection {
            connection.remote.shut_down().await;
        }
        outcome
    }

    fn token_source(&self) -> Result<&TokenSource, AuthorizationError> {
        self.tokens.as_deref().ok_or_else(|| {
            AuthorizationError::NotApplicable(format!(
                "the server `{}` needs no login: it is a program, or its token is configured",
                self.name()
            ))
        })
    }

    /// Records an error for the status; returns it redacted and truncated.
    pub(super) fn record_failure(&self, error: RemoteError) -> RemoteError {
        let RemoteError {
            class,
            message,
            source,
            not_run,
            needs_authorization,
            task: _,
            stderr: complaints,
        } = error;
        let need = self.tokens.as_ref().filter(|_| needs_authorization);
        let need = need.and_then(|tokens| tokens.describe_need(&self.mcp_command, self.name()));
        let message = need.map_or(message, Into::into);
        // Truncate after redacting: half a secret would not be recognized.
        let message: String =
            self.secrets.clean_text(&message).chars().take(MAX_ERROR_CHARS).collect();
        let mut told = RemoteError::new(class, message);
        told.not_run = not_run;
        told.needs_authorization = needs_authorization;
        told.source = source.map(|source| self.secrets.clean_text(&error_chain(&*source)).into());
        let mut state = self.lock_state();
        if class != ErrorClass::Aborted {
            state.last_error = Some(told.message.clone().into_owned());
            let is_there = state.connection.as_ref().is_some_and(|it| !it.remote.is_closed());
            if class == ErrorClass::Connection || !is_there {
                state.disconnect_reason = state.last_error.clone();
            }
        }
        if let Some(connection) = state.connection.clone() {
            state.stderr = connection.remote.stderr_tail();
        }
        if !complaints.is_empty() {
            state.stderr = complaints;
        }
        told
    }

    /// Closes the connection and removes the tools, permanently.
    pub(super) fn close(&self) {
        drop(self.take_connection());
    }

    /// Closes the connection, removes the tools, and waits for the end of the server.
    pub(super) async fn shut_down(&self) {
        if let Some(connection) = self.take_connection() {
            connection.shut_down().await;
        }
    }

    /// Removes the tools and returns the connection.
    /// Returns the state of the connection.
    pub(super) fn status(&self) -> ServerStatus {
        let other_tools = self.other_tool_names();
        let state = self.lock_state();
        let connection = state.connection.as_ref();
        let connected = connection.is_some_and(|connection| !connection.remote.is_closed());
        let complaints = connection.map(|connection| connection.remote.stderr_tail());
        let lost = state.has_lost_validation.then_some(LOST_VALIDATION).into_iter();
        let odd = state.tools.iter().flat_map(|tool| {
            let odd = tool.lint_warnings(&other_tools);
            odd.into_iter().map(|one| format!("{}: {one}", tool.remote_name()))
        });
        ServerStatus {
            name: self.name().to_owned(),
            enabled: self.is_enabled(),
            transport: self.transport_identity(),
            connected,
            authorization: self.tokens.as_ref().and_then(|tokens| tokens.status()),
            tools: state.published.iter().map(|tool| tool.definition().name.to_string()).collect(),
            last_error: state.last_error.clone(),
            warnings: lost
                .map(str::to_owned)
                .chain(state.warnings.iter().cloned())
                .chain(odd)
                .collect(),
            stderr: self.secrets.clean_text(complaints.as_ref().unwrap_or(&state.stderr)),
        }
    }

    fn take_connection(&self) -> Option<Arc<dyn RemoteConnection>> {
        let _turn = self.publish_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock_state();
        state.is_removed = true;
        let connection = state.connection.take();
        state.tools.clear();
        self.tool_index.remove_server(self.name());
        let added = std::mem::take(&mut state.published);
        drop(state);
        if let Some(toolset) = self.toolset() {
            // Removing tools never conflicts.
            let _ = toolset.replace_added_for(&self.audience, &added, Vec::new());
        }
        connection.map(|connection| connection.remote)
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt to connect; there is one at a time. One that is dropped before the server had its
/// time is not counted.
struct ConnectAttempt<'a>(&'a ServerConnection);

impl ConnectAttempt<'_> {
    /// Counts the attempt.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for ConnectAttempt<'_> {
    fn drop(&mut self) {
        self.0.lock_state().attempts.pop_back();
    }
}

fn server_removed_error() -> RemoteError {
    RemoteError::connection("the server was removed").not_run()
}

/// Joins an error and its causes.
fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Runs `work` with a timeout.
async fn with_timeout<T>(limit: Duration, work: RemoteFuture<'_, T>) -> Result<T, RemoteError> {
    let late = |_| RemoteError::timeout(format_args!("the server said nothing for {limit:?}"));
    timeout(limit, work).await.map_err(late)?
}

/// Announces changes of resources and prompts until the connection is closed.
async fn watch_offer_changes(server: Weak<ServerConnection>, remote: Arc<dyn RemoteConnection>) {
    let Some(watched) = server.upgrade().map(|server| server.watched.uris()) else { return };
    for uri in watched {
        // A server that no longer has the resource is asked again with the next connection.
        let _ = remote.watch_resource(&uri).await;
    }
    let mut lists = BTreeSet::new();
    loop {
        tokio::select! {
            change = remote.offer_changed() => {
                let Some(server) = server.upgrade() else { return };
                if !matches!(change, OfferChange::Resource(_)) {
                    lists.insert(change.clone());
                }
                server.offer_channels.announce(server.name(), change);
            }
            () = remote.closed() => break,
        }
    }
    // What the server had is gone with it.
    let Some(server) = server.upgrade() else { return };
    lists.into_iter().for_each(|list| server.offer_channels.announce(server.name(), list));
}
