//! Reads program options, which stand before and after the command.

use std::iter;

use clap::ArgMatches;

use crate::surface::cli::args;
use crate::surface::cli::exit::{CommandError, Result};

/// Returns the matches of the program and of its subcommands that have program options, from left
/// to right.
pub(crate) fn option_levels(matches: &ArgMatches) -> Vec<&ArgMatches> {
    let all = iter::successors(Some(matches), |it| it.subcommand().map(|(_, behind)| behind));
    // Where the switch is defined, it has a value, at least the default.
    all.filter(|it| it.try_contains_id(args::YES).unwrap_or_default()).collect()
}

/// Returns the last value of an option.
pub(crate) fn last_option<T>(levels: &[&ArgMatches], option: &str) -> Option<T>
where
    T: Clone + Send + Sync + 'static,
{
    levels.iter().rev().find_map(|matches| matches.get_one::<T>(option)).cloned()
}

/// Returns the value of two opposite switches on any level; `None` if neither is set.
pub(super) fn opposite_switches(
    levels: &[&ArgMatches],
    on: &str,
    off: &str,
) -> Result<Option<bool>> {
    let given = |name| levels.iter().any(|matches| matches.get_flag(name));
    match (given(on), given(off)) {
        (true, true) => {
            Err(CommandError::usage(format_args!("`--{on}` and `--{off}` exclude each other")))
        }
        (false, false) => Ok(None),
        (on, _) => Ok(Some(on)),
    }
}
