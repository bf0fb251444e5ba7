//! Stubs for `serve acp` in a program without the feature `acp`.
#![cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "there is no `serve` either"))]

use std::io;

use clap::{ArgMatches, Command};

use super::exit::{CommandError, Result};
use super::settings::Settings;
use super::{App, Io, args};

pub(super) fn build_command() -> Option<Command> {
    Some(args::disabled_command("acp"))
}

pub(super) fn run(
    _: &App,
    _: &str,
    _: &Settings,
    _: &[&ArgMatches],
    _: &ArgMatches,
    _: &mut Io<'_>,
) -> Result<io::Result<()>> {
    Err(CommandError::usage("this program is built without the agent for editors")
        .hint(args::ACP_FEATURE))
}
