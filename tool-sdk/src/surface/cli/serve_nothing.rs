//! Stubs for `serve` in a program without the feature `mcp`.

use clap::{ArgMatches, Command};

use super::config::Part;
use super::exit::{Failure, Result};
use super::{App, Io};

/// The settings of `serve`, which always are empty.
#[derive(Debug, Default)]
pub(super) struct Principals;

pub(super) fn principals(serve: Part<'_, '_>) -> Principals {
    serve.wrong("this program is built without a server");
    Principals
}

pub(super) fn command() -> Option<Command> {
    None
}

pub(super) fn run(_: &App, _: &str, _: &ArgMatches, _: &ArgMatches, _: &mut Io<'_>) -> Result {
    Err(Failure::usage("this program is built without a server"))
}
