//! Stubs for `serve` in a program without the feature `mcp`.

use clap::{ArgMatches, Command};

use super::exit::{CommandError, Result};
use super::settings::{Settings, TomlValue};
use super::{App, Io, args};

const NO_SERVER: &str = "this program is built without a server";

/// The settings of `serve`, which always are empty.
#[derive(Debug, Default)]
pub(super) struct ServeConfig;

impl ServeConfig {
    pub(super) fn has_client_roots(&self) -> bool {
        false
    }

    pub(super) fn has_agents(&self) -> bool {
        false
    }
}

pub(super) fn parse_serve_config(serve: TomlValue<'_, '_>) -> ServeConfig {
    serve.report_error(NO_SERVER);
    ServeConfig
}

pub(super) fn build_command() -> Option<Command> {
    Some(args::disabled_command("serve"))
}

pub(super) fn run(
    _: &App,
    _: &str,
    _: &Settings,
    _: &[&ArgMatches],
    _: &ArgMatches,
    _: &mut Io<'_>,
) -> Result {
    Err(CommandError::usage(NO_SERVER).hint(args::MCP_FEATURE))
}
