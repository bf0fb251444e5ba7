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

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tool_sdk_core::{Grantee, Rule, Toolset};
use tool_sdk_mcp::RemoteError;
use tool_sdk_remote::internal::{is_approval_void, name_prefix, parse_namespace};
use tool_sdk_remote::{DEFINITION_PERMISSION, ToolPins, Workers};

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

    /// Connects to the workers of every namespace; returns those that failed.
    pub(super) async fn connect_all(&self) -> Vec<(String, RemoteError)> {
        self.connect_where(|_| true).await
    }

    /// Connects to the workers that may have this tool.
    pub(super) async fn connect_for(&self, tool: &str) -> Vec<(String, RemoteError)> {
        self.connect_where(|server| tool.starts_with(&name_prefix(&server.namespace))).await
    }

    async fn connect_where(
        &self,
        is_wanted: impl Fn(&WorkerServer) -> bool,
    ) -> Vec<(String, RemoteError)> {
        let is_open = |server: &&WorkerServer| !self.is_connected(server);
        let wanted: Vec<_> =
            self.servers.iter().filter(|server| is_wanted(server)).filter(is_open).collect();
        let opened = join_all(wanted.iter().map(|server| server.connect())).await;
        let mut failed = Vec::new();
        for (server, opened) in wanted.into_iter().zip(opened) {
            match opened {
                Ok(workers) => self.add(workers),
                Err(error) => {
                    let error = RemoteError::connection(error.to_string());
                    failed.push((format!("workers of {}", server.namespace), error));
                }
            }
        }
        failed
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

    /// Returns the connections that are open.
    pub(super) fn connected(&self) -> Vec<Workers> {
        self.lock_state().connected.clone()
    }

    /// Whether the tool may be one of configured workers.
    pub(super) fn may_have_tool(&self, tool: &str) -> bool {
        parse_namespace(tool).is_some() && !self.is_empty()
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
