//! The MCP servers of the configuration, whose tools are added to those of the program.
//!
//! A server is only started when the command can need it: not for a call of one of the program's
//! own tools. A server that does not answer causes a warning on standard error, and the command
//! goes on without its tools.
//!
//! **Invariant:** connections live on a runtime that [`ConfiguredServers`] owns; dropping it ends
//! sessions and server processes.

mod command;
mod entry;
mod file;
mod folders;
mod splice;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use tokio::runtime::{Handle, Runtime};

pub(super) use self::command::{command, run};
pub(super) use self::entry::{Servers, servers};
use self::folders::Folders;
use super::exit::{FAILED, Failure, Result};
use super::request::Request;
use super::stage::{Spoken, Stage};
use super::{Io, config, place, style};
use crate::error::ToolError;
use crate::permission::{Grantee, Rule};
use crate::surface::mcp::client::{PERMISSIONS, name_prefix, parse_server};
use crate::surface::mcp::{RemoteError, ServerConfig, ServerManager, ToolPins};
use crate::toolset::Toolset;

/// How long the shutdown of server processes may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the last messages to servers may take: cancelled calls and ended sessions.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The timeout for servers that are only connected to compare their tools with another's.
const NEIGHBOURS: Duration = Duration::from_secs(3);
/// How often the end of these messages is checked.
const LOOK: Duration = Duration::from_millis(2);

/// Servers that could not be connected, with the errors.
type Failed = Vec<(String, RemoteError)>;

/// Which servers a command needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need<'a> {
    /// All of them.
    All,
    /// The server of this tool, unless the program has the tool itself.
    Tool(&'a str),
}

/// The configured servers, and the runtime that their connections live on.
pub(super) struct Foreign {
    upstreams: ServerManager,
    names: Vec<String>,
    /// The names of all configured servers, including those that are not registered.
    configured: Vec<String>,
    runtime: Option<Runtime>,
}

impl Foreign {
    /// Loads the configured servers without starting one. `levels` are the parsed options from
    /// left to right.
    pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        Self::of(&config::load(levels, io)?.servers, levels, io)
    }

    /// Loads the servers for a call. For one of the program's own tools, none is connected, but the
    /// tool may still list them.
    pub(super) fn beyond(own: &Toolset, request: &Request<'_>, io: &Io<'_>) -> Result<Self> {
        match own.get(request.name) {
            // The options after the tool's name are not parsed yet, and not needed.
            Some(_) => {
                let levels = request.before();
                // Configuration errors are reported later, when all options are parsed.
                let servers = config::load(&levels, io).map(|it| it.servers).unwrap_or_default();
                let folders = Folders::or_none(&servers, &levels, io);
                let upstreams =
                    servers.iter().filter_map(|server| server.upstream(&folders, io).ok());
                Self::known(upstreams.collect(), names(&servers), &levels, io)
            }
            None => {
                let behind = request.options_behind();
                let levels: Vec<_> = request.before().into_iter().chain(&behind).collect();
                Self::load(&levels, io)
            }
        }
    }

    fn of(servers: &Servers, levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        let folders = Folders::of(servers, levels, io)?;
        let upstreams: Vec<ServerConfig> =
            servers.iter().map(|server| server.upstream(&folders, io)).collect::<Result<_>>()?;
        let mut known = Self::known(upstreams, names(servers), levels, io)?;
        known.runtime = (!known.names.is_empty()).then(runtime).transpose()?;
        Ok(known)
    }

    /// Registers the servers without a runtime, so that none can be connected.
    fn known(
        upstreams: Vec<ServerConfig>,
        configured: Vec<String>,
        levels: &[&ArgMatches],
        io: &Io<'_>,
    ) -> Result<Self> {
        let toolset = Toolset::new(crate::registry::Registry::default());
        let known = ServerManager::new(Arc::new(toolset), pins(levels, io));
        let names = upstreams.iter().map(|one| one.name().to_owned()).collect();
        for upstream in upstreams {
            known.add(upstream).map_err(Failure::config)?;
        }
        Ok(Self { upstreams: known, names, configured, runtime: None })
    }

    /// Returns `tools` together with the tools of the servers in `need`.
    pub(super) fn beside(&self, tools: Toolset, need: Need<'_>, io: &mut Io<'_>) -> Toolset {
        if self.runtime.is_none() {
            return tools;
        }
        let tools = Arc::new(tools);
        self.upstreams.attach_toolset(&tools);
        self.connect(&tools, need, io);
        (*tools).clone()
    }

    /// Connects to all other servers, with a short timeout.
    pub(super) fn meet_others(&self, io: &mut Io<'_>) {
        let Some(runtime) = &self.runtime else { return };
        let all = async { tokio::time::timeout(NEIGHBOURS, self.upstreams.connect_all()).await };
        match runtime.block_on(all) {
            Ok(failed) => left_out(failed, io),
            Err(_) => io.say("warning: not every other server answered in time"),
        }
    }

    /// Adds the tools of the servers in `need` to the environment, gives its session access to the
    /// server manager, and warns of unmatched rules.
    pub(super) fn join(&self, stage: &mut Stage, need: Need<'_>, io: &mut Io<'_>) {
        self.lend_to(stage);
        self.connect(stage.pipeline.toolset(), need, io);
        stage.spoken().warn(|rule| self.may_match(rule), io);
    }

    /// Gives the environment access to the server manager without connecting; tools appear when
    /// their servers connect.
    pub(super) fn lend_to(&self, stage: &mut Stage) {
        stage.session = stage.session.clone().lend(self.upstreams.clone());
        self.upstreams.attach_toolset(&stage.pipeline.shared_toolset());
    }

    /// Connects to every server as a background task; the future returns those that failed.
    pub(super) fn connect_beside(&self) -> impl Future<Output = Failed> + Send + use<> {
        let upstreams = self.upstreams.clone();
        let connecting = self
            .runtime
            .as_ref()
            .map(|runtime| runtime.spawn(async move { upstreams.connect_all().await }));
        async move {
            match connecting {
                // A panic shows up as missing tools.
                Some(connecting) => connecting.await.unwrap_or_default(),
                None => Failed::new(),
            }
        }
    }

    /// Warns of servers that failed and of rules that match no tool.
    pub(super) fn tell(&self, failed: Failed, spoken: &Spoken, io: &mut Io<'_>) {
        left_out(failed, io);
        spoken.warn(|rule| self.may_match(rule), io);
    }

    /// Whether the rule may match a tool of a configured server that is not connected.
    fn may_match(&self, rule: &Rule) -> bool {
        let is_silent =
            |server: &&String| self.upstreams.status(server).is_none_or(|status| !status.connected);
        let of_server = |server: &String| {
            let start = name_prefix(server);
            rule.permission.as_str().starts_with(&start) || rule.speaks_of(&(&[&*start]).into())
        };
        let of_any = !self.configured.is_empty() && rule.speaks_of(&(&PERMISSIONS).into());
        of_any || self.configured.iter().filter(is_silent).any(of_server)
    }

    /// Returns the server manager.
    pub(super) fn upstreams(&self) -> &ServerManager {
        &self.upstreams
    }

    fn connect(&self, tools: &Toolset, need: Need<'_>, io: &mut Io<'_>) {
        let Some(runtime) = &self.runtime else { return };
        let failed = match need {
            Need::All => runtime.block_on(self.upstreams.connect_all()),
            Need::Tool(name) if tools.get(name).is_some() => return,
            Need::Tool(name) => {
                let Some(plain) = parse_server(name) else { return };
                let start = format!("mcp__{plain}__");
                let Some(server) = self.names.iter().find(|one| name_prefix(one) == start) else {
                    return;
                };
                match runtime.block_on(self.upstreams.connect(server)) {
                    Ok(_) => return,
                    Err(error) => vec![(server.clone(), error)],
                }
            }
        };
        left_out(failed, io);
    }
}

fn left_out(failed: Failed, io: &mut Io<'_>) {
    for (server, error) in failed {
        let line = format!("warning: the server `{server}` is left out: {error}");
        io.say(style::plain(&line));
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let runtime = self.runtime.take();
        let entered = runtime.as_ref().map(Runtime::enter);
        self.upstreams.close();
        drop(entered);
        if let Some(runtime) = runtime {
            runtime.block_on(last_words(runtime.handle()));
            // Waits for the server processes, which are killed at once.
            runtime.shutdown_timeout(FAREWELL);
        }
    }
}

/// Waits until the last messages to servers are sent: cancelled calls and ended sessions.
async fn last_words(runtime: &Handle) {
    let said = async {
        while runtime.metrics().num_alive_tasks() > 0 {
            tokio::time::sleep(LOOK).await;
        }
    };
    // A server that does not read them is abandoned.
    let _ = tokio::time::timeout(LAST_WORDS, said).await;
}

/// Opens the pinned definitions of the servers' tools.
fn pins(levels: &[&ArgMatches], io: &Io<'_>) -> ToolPins {
    let roots = place::roots(levels, io);
    let kept = |dir: PathBuf| ToolPins::in_folder(dir.join("mcp")).not_inside(&roots);
    place::state_dir(levels, io).map_or_else(ToolPins::in_memory, kept)
}

/// Returns a predicate for grants that are void because the tool's definition has changed.
pub(super) fn voids(levels: &[&ArgMatches], io: &Io<'_>) -> impl Fn(&Grantee) -> bool + use<> {
    let pins = pins(levels, io);
    move |to| {
        let definition = to.definition.as_deref();
        definition.is_some_and(|definition| pins.is_approval_void(to.tool.as_str(), definition))
    }
}

fn names(servers: &Servers) -> Vec<String> {
    servers.iter().map(|server| server.name.clone()).collect()
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(
        |error| {
            let words = format_args!("cannot start a runtime: {error}");
            Failure::new(FAILED, ToolError::internal(words))
        },
    )
}
