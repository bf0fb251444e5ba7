//! Stubs for configured MCP servers in a program without the feature `mcp`.

use clap::{ArgMatches, Command};

use super::config::Part;
use super::exit::{Failure, Result};
use super::request::Request;
use super::stage::Stage;
use super::{App, Io};
use crate::permission::Grantee;
use crate::toolset::Toolset;

pub(super) type Servers = ();

/// Which servers a command needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need<'a> {
    All,
    Tool(#[expect(dead_code, reason = "there is no server")] &'a str),
}

/// The empty set of servers.
pub(super) struct Foreign;

impl Foreign {
    #[expect(clippy::unnecessary_wraps, reason = "with servers, this may fail")]
    pub(super) fn load(_: &[&ArgMatches], _: &Io<'_>) -> Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unnecessary_wraps, reason = "with servers, this may fail")]
    pub(super) fn beyond(_: &Toolset, _: &Request<'_>, _: &Io<'_>) -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn beside(&self, tools: Toolset, _: Need<'_>, _: &mut Io<'_>) -> Toolset {
        tools
    }

    pub(super) fn join(&self, stage: &mut Stage, _: Need<'_>, io: &mut Io<'_>) {
        stage.spoken().warn(|_| false, io);
    }
}

pub(super) fn voids(_: &[&ArgMatches], _: &Io<'_>) -> impl Fn(&Grantee) -> bool + use<> {
    |_| false
}

pub(super) fn servers(mcp: Part<'_, '_>) {
    mcp.wrong("this program is built without MCP client support");
}

pub(super) fn command(_: &str) -> Option<Command> {
    None
}

pub(super) fn run(_: &App, _: &ArgMatches, _: &ArgMatches, _: &mut Io<'_>) -> Result {
    Err(Failure::usage("this program is built without MCP client support"))
}
