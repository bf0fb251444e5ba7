//! Stubs for configured MCP servers in a program without the feature `mcp`.

use clap::{ArgMatches, Command};
use tool_sdk_core::{Grantee, Toolset};

use super::call_environment::CallEnvironment;
use super::exit::{CommandError, Result};
use super::settings::{Settings, TomlValue};
use super::{App, Io, args};

const NO_CLIENT: &str = "this program is built without MCP client support";

pub(super) type ServerEntries = ();

/// Which servers a command needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServerScope<'a> {
    All,
    Tool(#[expect(dead_code, reason = "there is no server")] &'a str),
}

/// The empty set of servers.
pub(super) struct ConfiguredServers;

impl ConfiguredServers {
    #[expect(clippy::unnecessary_wraps, reason = "with servers, this may fail")]
    pub(super) fn load(_: &Settings, _: &Io<'_>) -> Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unnecessary_wraps, reason = "with servers, this may fail")]
    pub(super) fn load_unconnected(_: &Settings, _: &Io<'_>) -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn merge_tools(
        &self,
        tools: Toolset,
        _: ServerScope<'_>,
        _: &mut Io<'_>,
    ) -> Toolset {
        tools
    }

    pub(super) fn explain_missing_source(&self, _: &Toolset, _: &str) -> Option<String> {
        None
    }

    pub(super) fn connect_into(
        &self,
        environment: &mut CallEnvironment,
        _: ServerScope<'_>,
        io: &mut Io<'_>,
    ) {
        environment.unmatched_patterns().warn_unmatched(|_| false, io);
    }
}

pub(super) fn void_grant_check(_: &Settings) -> impl Fn(&Grantee) -> bool + use<> {
    |_| false
}

pub(super) fn parse_servers(mcp: TomlValue<'_, '_>) {
    mcp.report_error(NO_CLIENT);
}

pub(super) fn build_command(_: &str) -> Option<Command> {
    Some(args::disabled_command("mcp"))
}

pub(super) fn run(_: &App, _: &Settings, _: &ArgMatches, _: &ArgMatches, _: &mut Io<'_>) -> Result {
    Err(CommandError::usage(NO_CLIENT).hint(args::MCP_FEATURE))
}
