//! The MCP servers of the configuration, whose tools are added to those of the program.
//!
//! A server is only started when the command can need it: not for a call of one of the program's
//! own tools. A server that does not answer causes a warning on standard error, and the command
//! goes on without its tools.
//!
//! **Invariant:** connections live on a runtime that [`ConfiguredServers`] owns; dropping it ends
//! sessions and server processes.

mod client_entries;
mod command;
pub(super) mod config_edit;
mod import;
mod login;
mod offers;
mod pack;
mod plugin_servers;
mod references;
mod server_entry;
mod server_folders;
mod server_setup;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod text_edit;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Handle, Runtime};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinHandle;
use tool_sdk_core::{Grantee, Rule, ToolError, Toolset};
use tool_sdk_mcp::{
    CredentialStore, ForeignPrompts, ForeignResources, RemoteError, Server, ServerConfig,
    ServerManager, ServerStatus, ToolPins,
    internal::{PERMISSIONS, is_approval_void, name_prefix, parse_server},
};

pub(super) use self::command::{build_command, run};
use self::plugin_servers::PluginServerHost;
pub(super) use self::server_entry::{ServerEntries, ServerEntry, parse_servers};
use self::server_folders::ServerFolders;
pub(super) use self::server_setup::ServerSetup;
use super::call_environment::{CallEnvironment, UnmatchedPatterns};
use super::exit::{CommandError, FAILED, Result};
use super::plugins::with_plugin_host;
use super::settings::Settings;
#[cfg(feature = "remote")]
use super::workers::ConfiguredWorkers;
use super::{Io, style};

/// How long the shutdown of server processes may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the last messages to servers may take: cancelled calls and ended sessions.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for servers that are only connected to compare their tools with another's.
const OTHER_SERVERS_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the end of these messages is checked.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// What is missing of servers and workers, as warnings.
type SourceWarnings = Vec<String>;

/// Which servers a command needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerScope<'a> {
    /// All of them.
    All,
    /// The server of this tool, unless the program has the tool itself.
    Tool(&'a str),
}

/// How long the workers are connected whose NATS server is not there.
#[derive(Clone, Copy, Debug)]
enum WorkerConnecting {
    /// One attempt, for a command that ends.
    Once,
    /// Until the server is there, for a program that goes on.
    UntilThere,
}

/// The configured servers, and the runtime that their connections live on.
pub(super) struct ConfiguredServers {
    manager: ServerManager,
    /// For plugins that are loaded later.
    plugin_host: PluginServerHost,
    enabled_names: Vec<String>,
    /// The names of all configured servers, including those that are not registered.
    configured_names: Vec<String>,
    /// The remote workers, whose tools come and go with those of the servers.
    #[cfg(feature = "remote")]
    workers: Arc<ConfiguredWorkers>,
    runtime: Option<Runtime>,
}

impl ConfiguredServers {
    /// Loads the configured servers without starting one.
    pub(super) fn load(settings: &Settings, io: &Io<'_>) -> Result<Self> {
        Self::with_entries(settings.servers.iter(), settings, io)
    }

    /// Loads the servers for a call of one of the program's own tools: none can be connected, but
    /// the tool may list them.
    pub(super) fn load_unconnected(settings: &Settings, io: &Io<'_>) -> Result<Self> {
        let folders = ServerFolders::resolve(&settings.servers, settings);
        let upstreams =
            settings.servers.iter().filter_map(|server| server.to_server_config(&folders, io).ok());
        Self::register(upstreams.collect(), entry_names(&settings.servers), settings, io)
    }

    /// Loads these servers without starting one.
    fn with_entries<'e>(
        entries: impl Iterator<Item = &'e ServerEntry> + Clone,
        settings: &Settings,
        io: &Io<'_>,
    ) -> Result<Self> {
        let folders = ServerFolders::resolve(entries.clone(), settings);
        let upstreams: Vec<ServerConfig> = entries
            .clone()
            .map(|server| server.to_server_config(&folders, io))
            .collect::<Result<_>>()?;
        let mut known = Self::register(upstreams, entry_names(entries), settings, io)?;
        #[cfg(feature = "remote")]
        {
            known.workers = Arc::new(ConfiguredWorkers::load(settings, io)?);
        }
        known.runtime = known.has_sources().then(start_runtime).transpose()?;
        let handle = known.runtime.as_ref().map(|runtime| runtime.handle().clone());
        known.plugin_host.set_runtime(handle);
        Ok(known)
    }

    /// Registers the servers without a runtime, so that none can be connected.
    fn register(
        upstreams: Vec<ServerConfig>,
        configured: Vec<String>,
        settings: &Settings,
        io: &Io<'_>,
    ) -> Result<Self> {
        let toolset = Toolset::new(tool_sdk_core::Registry::default());
        let known = ServerManager::new(Arc::new(toolset), open_pins(settings))
            .with_credentials(open_credentials(settings))
            .with_mcp_command(mcp_command(io));
        let names = upstreams.iter().map(|one| one.name().to_owned()).collect();
        for upstream in upstreams {
            known.add(upstream).map_err(CommandError::config)?;
        }
        Ok(Self {
            plugin_host: PluginServerHost::new(known.clone(), settings),
            manager: known,
            enabled_names: names,
            configured_names: configured,
            #[cfg(feature = "remote")]
            workers: Arc::new(ConfiguredWorkers::none()),
            runtime: None,
        })
    }

    /// Whether tools may come from elsewhere.
    fn has_sources(&self) -> bool {
        #[cfg(feature = "remote")]
        if !self.workers.is_empty() {
            return true;
        }
        !self.enabled_names.is_empty()
    }

    /// Adds the tools to `toolset` from now on.
    fn attach_toolset(&self, toolset: &Arc<Toolset>) {
        self.manager.attach_toolset(toolset);
        #[cfg(feature = "remote")]
        self.workers.attach_toolset(toolset);
    }

    /// Returns `tools` together with the tools of the servers in `need`.
    pub(super) fn merge_tools(
        &self,
        tools: Toolset,
        need: ServerScope<'_>,
        io: &mut Io<'_>,
    ) -> Toolset {
        if self.runtime.is_none() {
            return tools;
        }
        let tools = Arc::new(tools);
        self.attach_toolset(&tools);
        self.connect_scope(&tools, need, io);
        (*tools).clone()
    }

    /// Says that there are no workers which could have this tool; `None` when there are, or when it is
    /// no tool of workers.
    #[cfg_attr(not(feature = "remote"), expect(unused_variables, reason = "there are no workers"))]
    pub(super) fn explain_missing_source(&self, tools: &Toolset, tool: &str) -> Option<String> {
        #[cfg(feature = "remote")]
        return self.workers.explain_missing(tools, tool);
        #[cfg(not(feature = "remote"))]
        None
    }

    /// Connects to one server and adds its tools to `tools`; fails with the reason if it cannot.
    pub(super) fn connect_server(
        &self,
        tools: &Arc<Toolset>,
        server: &str,
    ) -> Result<ServerStatus> {
        self.manager.attach_toolset(tools);
        self.block_on(self.manager.connect(server)).map_err(|error| {
            let words = format_args!("cannot use the server `{server}`: {error}");
            let failed = CommandError::new(FAILED, ToolError::unavailable(words));
            match error.stderr.trim() {
                "" => failed,
                said => failed.hint(format_args!("it wrote: {}", last_lines(said))),
            }
        })
    }

    /// Runs a request to a server, which is connected if necessary.
    fn block_on<T>(
        &self,
        request: impl Future<Output = std::result::Result<T, RemoteError>>,
    ) -> std::result::Result<T, RemoteError> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(request),
            None => Err(RemoteError::connection("the server is not loaded")),
        }
    }

    /// Runs work for a server other than a request to it.
    fn run_blocking<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        Ok(self.loaded_runtime()?.block_on(work))
    }

    /// Starts work for a server on the runtime of the connections.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        Ok(self.loaded_runtime()?.spawn(work))
    }

    fn loaded_runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(|| {
            CommandError::new(FAILED, ToolError::unavailable("the server is not loaded"))
        })
    }

    /// Connects to all other servers, with a short timeout.
    pub(super) fn connect_others(&self, io: &mut Io<'_>) {
        let Some(runtime) = &self.runtime else { return };
        let all =
            async { tokio::time::timeout(OTHER_SERVERS_TIMEOUT, self.manager.connect_all()).await };
        match runtime.block_on(all) {
            Ok(failed) => print_warnings(left_out_warnings(failed), io),
            Err(_) => io.print_stderr("warning: not every other server answered in time"),
        }
    }

    /// Adds the tools of the servers in `need` to the environment, gives its session access to the
    /// server manager, and warns of unmatched rules.
    pub(super) fn connect_into(
        &self,
        environment: &mut CallEnvironment,
        need: ServerScope<'_>,
        io: &mut Io<'_>,
    ) {
        self.attach_to(environment);
        self.connect_scope(environment.pipeline.toolset(), need, io);
        environment.unmatched_patterns().warn_unmatched(|rule| self.may_match_later(rule), io);
    }

    /// Gives the environment access to the server manager without connecting; tools appear when
    /// their servers connect. Plugins that are loaded later add their servers.
    pub(super) fn attach_to(&self, environment: &mut CallEnvironment) {
        let session = environment.session.clone().with_service(self.manager.clone());
        environment.session = with_plugin_host(session, self.plugin_host.clone());
        self.attach_toolset(&environment.pipeline.shared_toolset());
    }

    /// Connects to every server as a background task; the future returns what is missing after one
    /// attempt. Workers whose NATS server is not there are connected once it is.
    pub(crate) fn connect_in_background(
        &self,
    ) -> impl Future<Output = SourceWarnings> + Send + use<> {
        let sources = self.connect_sources(WorkerConnecting::UntilThere);
        let connecting = self.runtime.as_ref().map(|runtime| runtime.spawn(sources));
        async move {
            match connecting {
                // A panic shows up as missing tools.
                Some(connecting) => connecting.await.unwrap_or_default(),
                None => SourceWarnings::new(),
            }
        }
    }

    /// Connects to every server, and to the workers of every namespace.
    #[cfg_attr(not(feature = "remote"), expect(unused_variables, reason = "there are no workers"))]
    fn connect_sources(
        &self,
        connecting: WorkerConnecting,
    ) -> impl Future<Output = SourceWarnings> + Send + use<> {
        let manager = self.manager.clone();
        #[cfg(feature = "remote")]
        let workers = Arc::clone(&self.workers);
        async move {
            #[cfg(feature = "remote")]
            {
                let workers = async {
                    match connecting {
                        WorkerConnecting::Once => workers.connect_once().await,
                        WorkerConnecting::UntilThere => workers.connect_in_background().await,
                    }
                };
                let (failed, missing) = tokio::join!(manager.connect_all(), workers);
                left_out_warnings(failed).into_iter().chain(missing).collect()
            }
            #[cfg(not(feature = "remote"))]
            left_out_warnings(manager.connect_all().await)
        }
    }

    /// Returns lines that come when workers are connected that were not at first.
    pub(super) fn late_connections(&self) -> UnboundedReceiver<String> {
        let (lines, received) = mpsc::unbounded_channel();
        #[cfg(feature = "remote")]
        self.workers.report_late_connections(&lines);
        drop(lines);
        received
    }

    /// Warns of servers that failed and of rules that match no tool.
    pub(super) fn report_failures(
        &self,
        missing: SourceWarnings,
        patterns: &UnmatchedPatterns,
        io: &mut Io<'_>,
    ) {
        print_warnings(missing, io);
        patterns.warn_unmatched(|rule| self.may_match_later(rule), io);
    }

    /// Whether the rule may match a tool of a configured server that is not connected.
    fn may_match_later(&self, rule: &Rule) -> bool {
        let is_silent =
            |server: &&String| self.manager.status(server).is_none_or(|status| !status.connected);
        let of_server = |server: &String| {
            let start = name_prefix(server);
            rule.permission.as_str().starts_with(&start)
                || rule.applies_to_names(&(&[&*start]).into())
        };
        let of_any =
            !self.configured_names.is_empty() && rule.applies_to_names(&(&PERMISSIONS).into());
        #[cfg(feature = "remote")]
        if self.workers.may_match_later(rule) {
            return true;
        }
        of_any || self.configured_names.iter().filter(is_silent).any(of_server)
    }

    /// Lets the server pass on the resources and prompts of the configured servers.
    pub(crate) fn pass_on(&self, server: Server) -> Server {
        match self.configured_names.is_empty() {
            true => server,
            false => server
                .with_resources(ForeignResources::new(self.manager.clone()))
                .with_prompts(ForeignPrompts::new(self.manager.clone())),
        }
    }

    /// Returns the server manager.
    pub(super) fn manager(&self) -> &ServerManager {
        &self.manager
    }

    /// Returns the remote workers.
    #[cfg(all(feature = "remote", feature = "http"))]
    pub(super) fn workers(&self) -> &Arc<ConfiguredWorkers> {
        &self.workers
    }

    fn connect_scope(&self, tools: &Toolset, need: ServerScope<'_>, io: &mut Io<'_>) {
        let Some(runtime) = &self.runtime else { return };
        let missing = match need {
            ServerScope::All => runtime.block_on(self.connect_sources(WorkerConnecting::Once)),
            ServerScope::Tool(name) if tools.get(name).is_some() => return,
            #[cfg(feature = "remote")]
            ServerScope::Tool(name) if self.workers.may_have_tool(name) => {
                runtime.block_on(self.workers.connect_for(name))
            }
            ServerScope::Tool(name) => {
                let Some(plain) = parse_server(name) else { return };
                let start = format!("mcp__{plain}__");
                let Some(server) = self.enabled_names.iter().find(|one| name_prefix(one) == start)
                else {
                    return;
                };
                match runtime.block_on(self.manager.connect(server)) {
                    Ok(_) => return,
                    Err(error) => left_out_warnings(vec![(server.clone(), error)]),
                }
            }
        };
        print_warnings(missing, io);
    }
}

/// Returns the last lines of a text on one line.
fn last_lines(text: &str) -> String {
    const LINES: usize = 5;
    let lines: Vec<&str> = text.lines().rev().take(LINES).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}

fn left_out_warnings(failed: Vec<(String, RemoteError)>) -> SourceWarnings {
    let warning = |(server, error)| format!("the server `{server}` is left out: {error}");
    failed.into_iter().map(warning).collect()
}

fn print_warnings(warnings: SourceWarnings, io: &mut Io<'_>) {
    for warning in warnings {
        io.print_stderr(style::sanitize_text(&format!("warning: {warning}")));
    }
}

impl Drop for ConfiguredServers {
    fn drop(&mut self) {
        #[cfg(feature = "remote")]
        self.workers.close();
        let Some(runtime) = self.runtime.take() else { return self.manager.close() };
        let end = || {
            runtime.block_on(self.manager.shut_down());
            runtime.block_on(drain_tasks(runtime.handle()));
            runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        };
        // A thread that drives a runtime must not wait for another one.
        match Handle::try_current() {
            Err(_) => end(),
            Ok(_) => std::thread::scope(|scope| drop(scope.spawn(end).join())),
        }
    }
}

/// Waits until the last messages to servers are sent: cancelled calls and ended sessions.
async fn drain_tasks(runtime: &Handle) {
    let said = async {
        while runtime.metrics().num_alive_tasks() > 0 {
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        }
    };
    // A server that does not read them is abandoned.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, said).await;
}

/// Opens the pinned definitions of the servers' tools.
fn open_pins(settings: &Settings) -> ToolPins {
    match &settings.state_dir {
        Some(dir) => ToolPins::in_folder(dir.join("mcp")).not_inside(&settings.roots),
        None => ToolPins::in_memory(),
    }
}

/// Opens the tokens of the servers.
fn open_credentials(settings: &Settings) -> CredentialStore {
    match &settings.state_dir {
        Some(dir) => CredentialStore::in_folder(dir.join("mcp")).not_inside(&settings.roots),
        None => CredentialStore::in_memory(),
    }
}

/// Returns the command of the user that has `login` and `inspect`.
fn mcp_command(io: &Io<'_>) -> String {
    let program = io.program_path.as_ref().and_then(|path| path.file_stem()?.to_str());
    program.map_or("mcp".to_owned(), |program| format!("{program} mcp"))
}

/// Returns a predicate for grants that are void because the tool's definition has changed.
pub(super) fn void_grant_check(settings: &Settings) -> impl Fn(&Grantee) -> bool + use<> {
    let pins = open_pins(settings);
    #[cfg(feature = "remote")]
    let is_void_of_workers = super::workers::void_grant_check(settings);
    move |to| {
        #[cfg(feature = "remote")]
        if is_void_of_workers(to) {
            return true;
        }
        let definition = to.definition.as_deref();
        definition.is_some_and(|definition| is_approval_void(&pins, to.tool.as_str(), definition))
    }
}

fn entry_names<'e>(entries: impl IntoIterator<Item = &'e ServerEntry>) -> Vec<String> {
    entries.into_iter().map(|server| server.name.clone()).collect()
}

fn start_runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(
        |error| {
            let words = format_args!("cannot start a runtime: {error}");
            CommandError::new(FAILED, ToolError::internal(words))
        },
    )
}
