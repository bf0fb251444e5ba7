//! Remote workers: those of the configuration, whose tools are added to those of the program, and
//! the command about them.
//!
//! ```toml
//! [workers.gpu]
//! url = "tls://nats.example.com:4222"
//! key_file = "/run/secrets/permit-key"
//! credentials_file = "/run/secrets/nats.creds"
//! ```
//!
//! **Invariant:** the configuration contains no secret, only where to read it.

mod command;
mod entry;
#[cfg(feature = "http")]
mod load;
mod review;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tokio::sync::mpsc::UnboundedSender;
use tool_sdk_core::internal::printable_name;
use tool_sdk_core::{Grantee, Rule, Toolset};
use tool_sdk_remote::internal::{is_approval_void, name_prefix, parse_namespace};
use tool_sdk_remote::{ConnectionStatus, DEFINITION_PERMISSION, Namespace, ToolPins, Workers};

pub(super) use self::command::{build_command, run};
use self::entry::WorkerServer;
pub(super) use self::entry::{WorkerEntries, parse_workers, read_secret_file};
#[cfg(feature = "http")]
pub(super) use self::load::with_worker_load;
use super::Io;
use super::exit::Result;
use super::settings::Settings;

/// The configured workers.
pub(super) struct ConfiguredWorkers {
    servers: Vec<WorkerServer>,
    state: Mutex<ConnectionState>,
}

/// A configured namespace, and its workers or why there is no connection.
struct NamespaceConnection {
    namespace: Namespace,
    url: String,
    workers: std::result::Result<Workers, String>,
}

/// Why the workers of a namespace are not connected.
struct ConnectFailure {
    namespace: Namespace,
    reason: String,
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the workers of `{}` are not connected: {}", self.namespace, self.reason)
    }
}

/// The connections, and the toolset that their tools are added to.
#[derive(Default)]
struct ConnectionState {
    toolset: Option<Arc<Toolset>>,
    connected: Vec<Workers>,
}

impl ConfiguredWorkers {
    /// Reads the keys of the configured workers without connecting.
    pub(super) fn load(settings: &Settings, io: &Io<'_>) -> Result<Self> {
        let pins = open_pins(settings);
        let servers = settings
            .workers
            .iter()
            .map(|entry| entry.to_server(&pins, io))
            .collect::<Result<_>>()?;
        Ok(Self { servers, state: Mutex::default() })
    }

    /// Returns no workers, for a call that needs none.
    pub(super) fn none() -> Self {
        Self { servers: Vec::new(), state: Mutex::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Publishes the tools in `toolset` from now on.
    pub(super) fn attach_toolset(&self, toolset: &Arc<Toolset>) {
        let mut state = self.lock_state();
        state.toolset = Some(Arc::clone(toolset));
        state.connected.iter().for_each(|workers| attach(workers, toolset));
    }

    /// Connects once to the workers of every namespace; returns what is missing.
    pub(super) async fn connect_once(&self) -> Vec<String> {
        let failed = self.connect_where(|_| true).await;
        self.warnings(&failed)
    }

    /// Connects once to the workers of a namespace; returns them, or why there is no connection. `None`
    /// when no such namespace is configured.
    async fn connect_namespace(&self, namespace: &str) -> Option<NamespaceConnection> {
        let is_named = |server: &WorkerServer| server.namespace.as_str() == namespace;
        let failed = self.connect_where(is_named).await;
        let mut all = self.to_connections(failed).into_iter();
        all.find(|connection| connection.namespace.as_str() == namespace)
    }

    /// Connects once to the workers of every namespace; returns them, or why there is no connection.
    async fn connect_each(&self) -> Vec<NamespaceConnection> {
        let failed = self.connect_where(|_| true).await;
        self.to_connections(failed)
    }

    fn to_connections(&self, mut failed: Vec<ConnectFailure>) -> Vec<NamespaceConnection> {
        let connected = self.connected();
        let connection = |server: &WorkerServer| {
            let namespace = &server.namespace;
            let open = connected.iter().find(|it| it.namespace() == namespace).cloned();
            let failure = failed.iter_mut().find(|it| it.namespace == *namespace);
            let reason = failure.map(|it| std::mem::take(&mut it.reason)).unwrap_or_default();
            NamespaceConnection {
                namespace: namespace.clone(),
                url: server.url().to_owned(),
                workers: open.ok_or(reason),
            }
        };
        self.servers.iter().map(connection).collect()
    }

    /// Connects once to the workers that may have this tool; returns what is missing.
    pub(super) async fn connect_for(&self, tool: &str) -> Vec<String> {
        let may_have = |server: &WorkerServer| tool.starts_with(&name_prefix(&server.namespace));
        let failed = self.connect_where(may_have).await;
        self.warnings(&failed)
    }

    async fn connect_where(
        &self,
        is_wanted: impl Fn(&WorkerServer) -> bool,
    ) -> Vec<ConnectFailure> {
        let is_open = |server: &&WorkerServer| !self.is_connected(server);
        let wanted: Vec<_> =
            self.servers.iter().filter(|server| is_wanted(server)).filter(is_open).collect();
        let opened = join_all(wanted.iter().map(|server| server.connect())).await;
        let mut failed = Vec::new();
        for (server, opened) in wanted.into_iter().zip(opened) {
            match opened {
                Ok(workers) => self.add(workers),
                Err(error) => failed.push(ConnectFailure {
                    namespace: server.namespace.clone(),
                    reason: error.to_string(),
                }),
            }
        }
        failed
    }

    /// Connects to the workers of every namespace, and goes on in the background with those whose
    /// server is not there. Returns what is missing after one attempt.
    pub(super) async fn connect_in_background(&self) -> Vec<String> {
        for server in self.servers.iter().filter(|server| !self.is_connected(server)) {
            self.add(server.connect_in_background());
        }
        let attempts = self.connected().into_iter().map(async |workers| {
            let mut connection = workers.connection();
            let status = connection.wait_for(|it| *it != ConnectionStatus::Connecting).await;
            match status.as_deref() {
                Ok(ConnectionStatus::Disconnected(reason)) => Some(ConnectFailure {
                    namespace: workers.namespace().clone(),
                    reason: format!("{reason}; trying again in the background"),
                }),
                _ => None,
            }
        });
        let failed: Vec<_> = join_all(attempts).await.into_iter().flatten().collect();
        self.warnings(&failed)
    }

    /// Sends a line for each namespace that is not connected yet, once it is.
    pub(super) fn report_late_connections(&self, lines: &UnboundedSender<String>) {
        for workers in self.connected() {
            let (mut connection, lines) = (workers.connection(), lines.clone());
            if *connection.borrow() == ConnectionStatus::Connected {
                continue;
            }
            let line = format!("the workers of `{}` are connected", workers.namespace());
            tokio::spawn(async move {
                let is_decided = |status: &ConnectionStatus| {
                    matches!(status, ConnectionStatus::Connected | ConnectionStatus::Closed)
                };
                let decided = connection.wait_for(is_decided).await;
                if decided.is_ok_and(|status| *status == ConnectionStatus::Connected) {
                    // Fails when the command ends.
                    let _ = lines.send(line);
                }
            });
        }
    }

    /// Returns what is missing: the workers that are not connected, and tools whose names are in use.
    fn warnings(&self, failed: &[ConnectFailure]) -> Vec<String> {
        let mut warnings: Vec<String> = failed.iter().map(ToString::to_string).collect();
        for workers in self.connected() {
            for (tool, reason) in workers.left_out_tools() {
                warnings.push(format!("the tool `{tool}` of workers is left out: {reason}"));
            }
        }
        warnings
    }

    fn add(&self, workers: Workers) {
        let mut state = self.lock_state();
        if let Some(toolset) = &state.toolset {
            attach(&workers, toolset);
        }
        state.connected.push(workers);
    }

    fn is_connected(&self, server: &WorkerServer) -> bool {
        self.lock_state().connected.iter().any(|it| *it.namespace() == server.namespace)
    }

    /// Returns the connections, of which those in the background may not be there yet.
    pub(super) fn connected(&self) -> Vec<Workers> {
        self.lock_state().connected.clone()
    }

    /// Whether the tool may be one of configured workers.
    pub(super) fn may_have_tool(&self, tool: &str) -> bool {
        parse_namespace(tool).is_some() && !self.is_empty()
    }

    /// Says that there are no workers which could have this tool; `None` when there are, or when it is
    /// no tool of workers.
    pub(super) fn explain_missing(&self, tools: &Toolset, tool: &str) -> Option<String> {
        let server =
            self.servers.iter().find(|server| tool.starts_with(&name_prefix(&server.namespace)))?;
        let (namespace, prefix) = (&server.namespace, name_prefix(&server.namespace));
        let name = printable_name(tool);
        if !self.is_connected(server) {
            return Some(format!(
                "`{name}` cannot be reached: the workers of `{namespace}` are not connected"
            ));
        }
        let view = tools.view();
        let has_any = view.definitions().any(|it| it.name.as_str().starts_with(&prefix));
        (!has_any).then(|| format!("`{name}` cannot be reached: `{namespace}` has no workers now"))
    }

    /// Whether the rule may match a tool of workers that come later.
    pub(super) fn may_match_later(&self, rule: &Rule) -> bool {
        let of_namespace = |server: &WorkerServer| {
            let start = name_prefix(&server.namespace);
            rule.permission.as_str().starts_with(&start)
                || rule.applies_to_names(&(&[&*start]).into())
        };
        let of_any = !self.is_empty() && rule.applies_to_names(&(&[DEFINITION_PERMISSION]).into());
        of_any || self.servers.iter().any(of_namespace)
    }

    /// Removes the tools and ends the connections.
    pub(super) fn close(&self) {
        self.lock_state().connected.drain(..).for_each(|workers| workers.close());
    }

    fn lock_state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn attach(workers: &Workers, toolset: &Arc<Toolset>) {
    if let Err(error) = workers.attach_toolset(toolset) {
        // The configuration refuses two namespaces with one prefix, so this does not happen.
        tracing::warn!(%error, "the tools of workers are left out");
    }
}

/// Opens the pinned definitions of the workers' tools.
fn open_pins(settings: &Settings) -> ToolPins {
    match &settings.state_dir {
        Some(dir) => ToolPins::in_folder(dir.join("remote")).not_inside(&settings.roots),
        None => ToolPins::in_memory(),
    }
}

/// Returns a predicate for grants that are void because the tool's definition has changed.
pub(super) fn void_grant_check(settings: &Settings) -> impl Fn(&Grantee) -> bool + use<> {
    let pins = open_pins(settings);
    move |to| {
        let definition = to.definition.as_deref();
        definition.is_some_and(|definition| is_approval_void(&pins, to.tool.as_str(), definition))
    }
}
