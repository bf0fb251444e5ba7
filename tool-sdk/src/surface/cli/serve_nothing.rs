//! `serve`, in a program that was built without anything to serve with.

use clap::{ArgMatches, Command};

use super::exit::{Failure, Result};
use super::{App, Io};

pub(super) fn command() -> Option<Command> {
    None
}

pub(super) fn run(_: &App, _: &str, _: &ArgMatches, _: &ArgMatches, _: &mut Io<'_>) -> Result {
    Err(Failure::usage("this program has no server"))
}
