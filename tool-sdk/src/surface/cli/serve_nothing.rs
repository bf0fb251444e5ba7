//! `serve`, in a program that was built without anything to serve with.

use clap::{ArgMatches, Command};

use super::config::Part;
use super::exit::{Failure, Result};
use super::{App, Io};

/// Nobody.
#[derive(Debug, Default)]
pub(super) struct Principals;

pub(super) fn principals(serve: Part<'_, '_>) -> Principals {
    serve.wrong("this program has no server");
    Principals
}

pub(super) fn command() -> Option<Command> {
    None
}

pub(super) fn run(_: &App, _: &str, _: &ArgMatches, _: &ArgMatches, _: &mut Io<'_>) -> Result {
    Err(Failure::usage("this program has no server"))
}
