//! The connection to one server, its state, and the tools that it offers.
//!
//! A connection is opened on first use, and reopened on use after it was lost, with backoff and at
//! most five times in five minutes. Each listing replaces the earlier one in one step.
//!
//! **Invariant:** no call is sent twice: a call that was lost is not retried. A server that was
//! removed is not reconnected, even while some of its tools are still referenced.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
use super::tool::{DescriptionLint, ForeignTool, ToolSchemas};
use super::tool_index::{OtherToolNames, ToolNameIndex};
use super::{naming, time_limit, transport};

/// How many connections may be opened within [`ATTEMPT_WINDOW`].
const MAX_ATTEMPTS: usize = 5;
const ATTEMPT_WINDOW: Duration = Duration::from_secs(300);

/// The delay before the second attempt; it doubles with each further one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(250);

/// How long notifications of changed tools are collected before the tools are listed.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// How many tools of one server are used; the others are left out with a warning.
const MAX_TOOLS: usize = 1000;

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
    /// What the user runs to authorize the server.
    login_command: String,
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
        let login_command = format!("{} {}", authorization.login_command, config.name());
        Arc::new(Self {
            config,
            secrets,
            tokens,
            login_command,
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
        let watch = watch_tool_changes(Arc::downgrade(self), Arc::clone(&remote));
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
        let need = need.and_then(|tokens| tokens.describe_need(&self.login_command));
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

/// Lists the tools again after each notification that they changed.
async fn watch_tool_changes(line: Weak<ServerConnection>, remote: Arc<dyn RemoteConnection>) {
    loop {
        tokio::select! {
            () = remote.tools_changed() => {}
            () = remote.closed() => return,
        }
        // Servers that change one tool mostly change more right after it.
        sleep(DEBOUNCE).await;
        let Some(limit) = line.upgrade().map(|line| line.config.startup_timeout) else {
            return;
        };
        let listed = with_timeout(limit, remote.list_tools()).await;
        let Some(line) = line.upgrade() else { return };
        let made = match listed {
            Ok(tools) => line.prepare_tools(&tools).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(made) => line.publish_tools(&remote, made),
            Err(error) => drop(line.record_failure(error)),
        }
    }
}

/// Announces changes of resources and prompts until the connection is closed.
async fn watch_offer_changes(line: Weak<ServerConnection>, remote: Arc<dyn RemoteConnection>) {
    let Some(watched) = line.upgrade().map(|line| line.watched.uris()) else { return };
    for uri in watched {
        // A server that no longer has the resource is asked again with the next connection.
        let _ = remote.watch_resource(&uri).await;
    }
    let mut lists = BTreeSet::new();
    loop {
        tokio::select! {
            change = remote.offer_changed() => {
                let Some(line) = line.upgrade() else { return };
                if !matches!(change, OfferChange::Resource(_)) {
                    lists.insert(change.clone());
                }
                line.offer_channels.announce(line.name(), change);
            }
            () = remote.closed() => break,
        }
    }
    // What the server had is gone with it.
    let Some(line) = line.upgrade() else { return };
    lists.into_iter().for_each(|list| line.offer_channels.announce(line.name(), list));
}

/// Lists up to this length are prepared inline when all of their schemas are cheap.
const MAX_INLINE_TOOLS: usize = 32;

/// A listed tool with its compiled schemas, or why it cannot be called.
struct PreparedTool {
    tool: RemoteTool,
    schemas: Result<Arc<ToolSchemas>, String>,
    lint: DescriptionLint,
}

/// A prepared list of tools, and the warnings about the list.
struct PreparedListing {
    tools: Vec<PreparedTool>,
    warnings: Vec<String>,
}

/// Listing and publishing tools.
impl ServerConnection {
    /// Whether the server offers exactly this tool now.
    pub(super) fn offers_tool(&self, tool: &ForeignTool) -> bool {
        self.lock_state().tools.iter().any(|offered| offered.is_same_tool(tool))
    }

    /// Replaces a tool in the toolset by one with its current revision.
    pub(super) fn refresh_revision(&self, tool: &ForeignTool) {
        let _turn = self.publish_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock_state();
        let Some(at) = state.tools.iter().position(|offered| offered.is_same_tool(tool)) else {
            return;
        };
        let (Some(before), Some(toolset)) = (state.published.get(at).cloned(), self.toolset())
        else {
            return;
        };
        let renewed = state.tools[at].with_current_revision();
        let added: Arc<dyn Tool> = Arc::new(renewed.clone());
        (state.tools[at], state.published[at]) = (renewed, Arc::clone(&added));
        drop(state);
        // The name is the same, so there is no conflict.
        let _ = toolset.replace_added_for(&self.audience, &[before], vec![added]);
    }

    /// Publishes the tools in another toolset from now on.
    pub(super) fn attach_toolset(&self, toolset: &Arc<Toolset>) {
        *self.toolset.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(toolset);
        let added = self.lock_state().published.clone();
        if let Err(conflict) = toolset.replace_added_for(&self.audience, &[], added) {
            self.lock_state().warnings.push(format!("its tools are left out: {conflict}"));
        }
    }

    fn toolset(&self) -> Option<Arc<Toolset>> {
        self.toolset.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Compiles the schemas of the tools that the configuration allows; schemas that did not change
    /// are reused.
    async fn prepare_tools(&self, listed: &[RemoteTool]) -> Result<PreparedListing, RemoteError> {
        let oddities = self.config.unknown_filter_names(listed);
        let wanted =
            |tool: &&RemoteTool| self.config.allows_tool(&tool.name) && tool.is_visible_to_models();
        // Twice the limit, because duplicates are dropped later.
        let listed: Vec<RemoteTool> =
            listed.iter().filter(wanted).take(2 * MAX_TOOLS).cloned().collect();
        let known: BTreeMap<String, Arc<ToolSchemas>> = {
            let state = self.lock_state();
            let each = state.tools.iter();
            each.map(|tool| (tool.remote_name().to_owned(), Arc::clone(tool.schemas()))).collect()
        };
        let is_quick = listed.len() <= MAX_INLINE_TOOLS && listed.iter().all(ToolSchemas::is_cheap);
        let make = move || {
            let of = |tool: RemoteTool| {
                let same = known.get(&tool.name).filter(|schemas| schemas.matches_tool(&tool));
                let schemas = match same {
                    Some(schemas) => Ok(Arc::clone(schemas)),
                    None => ToolSchemas::compile(&tool).map(Arc::new),
                };
                // The text of a tool that is left out is not checked.
                let lint = schemas
                    .as_ref()
                    .map(|_| DescriptionLint::check_tool(&tool))
                    .unwrap_or_default();
                PreparedTool { tool, schemas, lint }
            };
            listed.into_iter().map(of).collect()
        };
        let made = match is_quick {
            true => Some(make()),
            false => time_limit::run_with_limit(self.config.startup_timeout, make).await,
        };
        let tools =
            made.ok_or_else(|| RemoteError::timeout("checking its tool schemas took too long"))?;
        Ok(PreparedListing { tools, warnings: oddities })
    }

    /// Replaces the published tools by these. A listing of an earlier connection is ignored.
    fn publish_tools(
        self: &Arc<Self>,
        remote: &Arc<dyn RemoteConnection>,
        listed: PreparedListing,
    ) {
        let _turn = self.publish_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_now = |now: &LiveConnection| Arc::ptr_eq(&now.remote, remote);
        if !self.lock_state().connection.as_ref().is_some_and(is_now) {
            return;
        }
        let Some(toolset) = self.toolset() else { return };
        let (tools, mut warnings) = self.accept_tools(listed.tools);
        warnings.extend(listed.warnings);
        warnings
            .extend(remote.listing_warnings().iter().map(|remark| self.secrets.clean_text(remark)));
        if self.has_same_tools(&tools) {
            // An unchanged list must not notify the subscribers of the toolset.
            self.lock_state().warnings = warnings;
            return;
        }
        let mut added: Vec<Arc<dyn Tool>> = Vec::new();
        let before = self.lock_state().published.clone();
        for tool in &tools {
            added.push(Arc::new(tool.clone()));
        }
        match toolset.replace_added_for(&self.audience, &before, added.clone()) {
            Ok(()) => {
                let names = tools.iter().map(|tool| tool.remote_name().to_owned()).collect();
                self.tool_index.set_tools(self.name(), names);
                let mut state = self.lock_state();
                (state.tools, state.published) = (tools, added);
                state.warnings = warnings;
            }
            Err(conflict) => {
                warnings.push(format!("its tools are left out: {conflict}"));
                self.lock_state().warnings = warnings;
            }
        }
    }

    /// Whether these tools, with these revisions, are published already.
    fn has_same_tools(&self, tools: &[ForeignTool]) -> bool {
        let state = self.lock_state();
        let same = |(one, other): (&ForeignTool, &ForeignTool)| {
            one.is_same_tool(other) && one.definition().revision == other.definition().revision
        };
        state.tools.len() == tools.len() && state.tools.iter().zip(tools).all(same)
    }

    /// Returns the tools that can be called, and why the others cannot.
    fn accept_tools(
        self: &Arc<Self>,
        listed: Vec<PreparedTool>,
    ) -> (Vec<ForeignTool>, Vec<String>) {
        let (mut tools, mut warnings) = (Vec::<ForeignTool>::new(), Vec::new());
        let names = listed.iter().map(|made| made.tool.name.clone()).collect::<Vec<_>>();
        let names = naming::model_names(self.name(), names.iter().map(String::as_str));
        for PreparedTool { tool, schemas, lint } in listed {
            let raw = tool.name.escape_debug().take(80).collect::<String>();
            let Some(called) = names.get(tool.name.as_str()) else {
                warnings.push(format!(
                    "{raw}: left out, its name is not 1 to 128 of a-z A-Z 0-9 _ - ."
                ));
                continue;
            };
            if tools.iter().any(|other| other.remote_name() == tool.name) {
                warnings.push(format!("{raw}: left out, the server lists the name twice"));
                continue;
            }
            if tools.len() == MAX_TOOLS {
                warnings.push(format!("only the first {MAX_TOOLS} of its tools are used"));
                break;
            }
            match schemas {
                Ok(schemas) => {
                    tools.push(ForeignTool::new(self, called.clone(), &tool, schemas, lint));
                }
                Err(why) => warnings.push(format!("{raw}: left out, {why}")),
            }
        }
        (tools, warnings)
    }

    /// Returns the tools that are not the server's own, by the names that models and their servers
    /// use.
    pub(super) fn other_tool_names(&self) -> OtherToolNames {
        let own = naming::name_prefix(self.name());
        let names = self.toolset().map(|toolset| {
            let view = toolset.view();
            let names = view.definitions().map(|definition| definition.name.to_string());
            names.filter(|name| !name.starts_with(&own)).collect()
        });
        self.tool_index.names_of_others(self.name(), names.unwrap_or_default())
    }

    /// Returns the definition that pinning would record for each tool, by its name here.
    pub(super) fn pin_texts(&self) -> BTreeMap<String, String> {
        let tools = self.lock_state().tools.clone();
        tools
            .iter()
            .map(|tool| (tool.definition().name.to_string(), tool.definition_text()))
            .collect()
    }

    /// Returns the difference of each tool to its pinned definition, where there is one.
    pub(super) fn pin_differences(&self) -> BTreeMap<String, String> {
        let tools = self.lock_state().tools.clone();
        let name = |tool: &ForeignTool| tool.definition().name.to_string();
        tools.iter().filter_map(|it| Some((name(it), it.definition_difference()?))).collect()
    }

    /// Pins the tools if `shown` is what the server says now; returns whether it is.
    pub(super) fn pin_reviewed(
        &self,
        shown: &BTreeMap<String, String>,
    ) -> Result<bool, tool_sdk_core::ToolError> {
        let tools = self.lock_state().tools.clone();
        let is_shown = |tool: &ForeignTool| {
            shown.get(tool.definition().name.as_str()) == Some(&tool.definition_text())
        };
        if tools.len() != shown.len() || !tools.iter().all(is_shown) {
            return Ok(false);
        }
        tools.iter().try_for_each(ForeignTool::pin_definition).map(|()| true)
    }

    /// Pins every tool as the server describes it now.
    pub(super) fn pin_all(&self) -> Result<(), tool_sdk_core::ToolError> {
        let tools = self.lock_state().tools.clone();
        tools.iter().try_for_each(ForeignTool::pin_definition)
    }

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
}
