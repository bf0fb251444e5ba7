//! Stubs for `setup` in a program without the feature `mcp`.

use clap::{ArgMatches, Command};

use super::exit::{CommandError, Result};
use super::settings::Settings;
use super::{Io, args};

pub(super) fn build_command(_: &str) -> Option<Command> {
    Some(args::disabled_command("setup"))
}

pub(super) fn run(
    _: &str,
    _: &Settings,
    _: &[&ArgMatches],
    _: &ArgMatches,
    _: &mut Io<'_>,
) -> Result {
    Err(CommandError::usage("this program is built without a server").hint(args::MCP_FEATURE))
}
