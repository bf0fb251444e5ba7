//! `serve`, in a program that was built without anything to serve with.

use clap::{ArgMatches, Command};

use super::Io;
use super::exit::{Failure, Result};
use crate::registry::Registry;

pub(super) fn command() -> Option<Command> {
    None
}

pub(super) fn run(_: &str, _: Registry, _: [&ArgMatches; 2], _: &mut Io<'_>) -> Result {
    Err(Failure::usage("this program has no server"))
}
