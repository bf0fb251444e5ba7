//! Servers of the configuration: their tools beside those of the program.
//!
//! A server is only started when a command can need it: for a tool that the program has
//! itself nobody is bothered. One that does not answer is told on standard error, and the
//! command goes on without its tools.

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
use crate::surface::mcp::client::{PERMISSIONS, namespace, server_of};
use crate::surface::mcp::{Pins, RemoteError, Upstream, Upstreams};
use crate::toolset::Toolset;

/// How long it may take to end the programs that were started.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long it may take to tell servers that nobody needs them any more.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long servers may take whose tools only matter beside those of another.
const NEIGHBOURS: Duration = Duration::from_secs(3);
/// How often is looked whether they have been told.
const LOOK: Duration = Duration::from_millis(2);

/// Servers that are not there, and why.
type Failed = Vec<(String, RemoteError)>;

/// Which servers a command can need.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need<'a> {
    /// Every one.
    All,
    /// The one whose tool this is, if it is no tool of the program.
    Tool(&'a str),
}

/// The configured servers, and the runtime that their connections live on.
pub(super) struct Foreign {
    upstreams: Upstreams,
    names: Vec<String>,
    /// The names of all that are configured, also of those that are not needed.
    configured: Vec<String>,
    runtime: Option<Runtime>,
}

impl Foreign {
    /// The servers that the configuration names; none is started. `levels` are the options
    /// from left to right.
    pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        Self::of(&config::load(levels, io)?.servers, levels, io)
    }

    /// The servers that a call of a tool can need. A tool of the program itself may look at
    /// them, and is no reason to meet any.
    pub(super) fn beyond(own: &Toolset, request: &Request<'_>, io: &Io<'_>) -> Result<Self> {
        match own.get(request.name) {
            // What the options behind the name say is not known yet, and not needed.
            Some(_) => {
                let levels = request.before();
                // What is wrong with the configuration is told when all options are known.
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
        let upstreams: Vec<Upstream> =
            servers.iter().map(|server| server.upstream(&folders, io)).collect::<Result<_>>()?;
        let mut known = Self::known(upstreams, names(servers), levels, io)?;
        known.runtime = (!known.names.is_empty()).then(runtime).transpose()?;
        Ok(known)
    }

    /// These servers, with nothing on which a connection could live.
    fn known(
        upstreams: Vec<Upstream>,
        configured: Vec<String>,
        levels: &[&ArgMatches],
        io: &Io<'_>,
    ) -> Result<Self> {
        let toolset = Toolset::new(crate::registry::Registry::default());
        let known = Upstreams::new(Arc::new(toolset), pins(levels, io));
        let names = upstreams.iter().map(|one| one.name().to_owned()).collect();
        for upstream in upstreams {
            known.add(upstream).map_err(Failure::config)?;
        }
        Ok(Self { upstreams: known, names, configured, runtime: None })
    }

    /// `tools`, and beside them those of the servers that are needed.
    pub(super) fn beside(&self, tools: Toolset, need: Need<'_>, io: &mut Io<'_>) -> Toolset {
        if self.runtime.is_none() {
            return tools;
        }
        let tools = Arc::new(tools);
        self.upstreams.lend_to(&tools);
        self.connect(&tools, need, io);
        (*tools).clone()
    }

    /// Connects to all other servers as well, as far as that takes no time.
    pub(super) fn meet_others(&self, io: &mut Io<'_>) {
        let Some(runtime) = &self.runtime else { return };
        let all = async { tokio::time::timeout(NEIGHBOURS, self.upstreams.connect_all()).await };
        match runtime.block_on(all) {
            Ok(failed) => left_out(failed, io),
            Err(_) => io.say("warning: not every other server answered in time"),
        }
    }

    /// Adds the tools of the servers that are needed to those of a stage, and lends the
    /// servers to tools that add more.
    pub(super) fn join(&self, stage: &mut Stage, need: Need<'_>, io: &mut Io<'_>) {
        self.lend_to(stage);
        self.connect(stage.pipeline.toolset(), need, io);
        stage.spoken().warn(|rule| self.may_match(rule), io);
    }

    /// The same without waiting for anybody: tools come as their servers do.
    pub(super) fn lend_to(&self, stage: &mut Stage) {
        stage.session = stage.session.clone().lend(self.upstreams.clone());
        self.upstreams.lend_to(&stage.pipeline.shared_toolset());
    }

    /// Connects to every server beside whatever else is done; gives those that failed.
    pub(super) fn connect_beside(&self) -> impl Future<Output = Failed> + Send + use<> {
        let upstreams = self.upstreams.clone();
        let connecting = self
            .runtime
            .as_ref()
            .map(|runtime| runtime.spawn(async move { upstreams.connect_all().await }));
        async move {
            match connecting {
                // What panics there is told by whoever asks for its tools.
                Some(connecting) => connecting.await.unwrap_or_default(),
                None => Failed::new(),
            }
        }
    }

    /// Tells of servers that failed, and of rules that speak of nothing now.
    pub(super) fn tell(&self, failed: Failed, spoken: &Spoken, io: &mut Io<'_>) {
        left_out(failed, io);
        spoken.warn(|rule| self.may_match(rule), io);
    }

    /// Whether the rule may speak of a server that is configured and that nobody has asked for
    /// its tools.
    fn may_match(&self, rule: &Rule) -> bool {
        let is_silent =
            |server: &&String| self.upstreams.status(server).is_none_or(|status| !status.connected);
        let of_server = |server: &String| {
            let start = namespace(server);
            rule.permission.as_str().starts_with(&start) || rule.speaks_of(&(&[&*start]).into())
        };
        let of_any = !self.configured.is_empty() && rule.speaks_of(&(&PERMISSIONS).into());
        of_any || self.configured.iter().filter(is_silent).any(of_server)
    }

    /// The servers themselves, for tools that add to them.
    pub(super) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    fn connect(&self, tools: &Toolset, need: Need<'_>, io: &mut Io<'_>) {
        let Some(runtime) = &self.runtime else { return };
        let failed = match need {
            Need::All => runtime.block_on(self.upstreams.connect_all()),
            Need::Tool(name) if tools.get(name).is_some() => return,
            Need::Tool(name) => {
                let Some(plain) = server_of(name) else { return };
                let start = format!("mcp__{plain}__");
                let Some(server) = self.names.iter().find(|one| namespace(one) == start) else {
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
            // Until the programs are ended, which is at once.
            runtime.shutdown_timeout(FAREWELL);
        }
    }
}

/// Waits until servers have been told what is still to be said: that a call is not wanted any
/// more, and that a session is over.
async fn last_words(runtime: &Handle) {
    let said = async {
        while runtime.metrics().num_alive_tasks() > 0 {
            tokio::time::sleep(LOOK).await;
        }
    };
    // A server that does not listen has had its time.
    let _ = tokio::time::timeout(LAST_WORDS, said).await;
}

/// What was seen of the servers' tools.
fn pins(levels: &[&ArgMatches], io: &Io<'_>) -> Pins {
    let roots = place::roots(levels, io);
    let kept = |dir: PathBuf| Pins::in_folder(dir.join("mcp")).not_inside(&roots);
    place::state_dir(levels, io).map_or_else(Pins::in_memory, kept)
}

/// Says of approvals whether they are void because a tool became another one.
pub(super) fn voids(levels: &[&ArgMatches], io: &Io<'_>) -> impl Fn(&Grantee) -> bool + use<> {
    let pins = pins(levels, io);
    move |to| {
        let definition = to.definition.as_deref();
        definition.is_some_and(|definition| pins.is_void(to.tool.as_str(), definition))
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
