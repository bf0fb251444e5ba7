//! The sources of settings besides the file: program options and environment variables.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ArgMatches;

use super::check_path;
use crate::Io;
use crate::args::last_option;
use crate::exit::{CommandError, Result};

/// The options and the environment of a command.
#[derive(Clone, Copy)]
pub(super) struct SettingSources<'a, 'io> {
    /// The parsed options from left to right.
    pub(super) levels: &'a [&'a ArgMatches],
    pub(super) io: &'a Io<'io>,
}

impl SettingSources<'_, '_> {
    /// Returns the value of an option, or else of a variable.
    pub(super) fn option_or_variable<T>(&self, option: &str, variable: &str) -> Result<Option<T>>
    where
        T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
    {
        match last_option(self.levels, option) {
            Some(given) => Ok(Some(given)),
            None => self.variable(variable),
        }
    }

    /// Returns true if a switch is set, which only some commands have, or else the value of a boolean
    /// variable.
    pub(super) fn switch_or_variable(&self, option: &str, variable: &str) -> Result<Option<bool>> {
        match self.has_switch(option) {
            true => Ok(Some(true)),
            false => self.switch(variable),
        }
    }

    /// Whether a switch is set, which only some commands have.
    fn has_switch(&self, option: &str) -> bool {
        let mut given = self.levels.iter().map(|matches| matches.try_get_one::<bool>(option));
        given.any(|given| matches!(given, Ok(Some(true))))
    }

    /// Returns the path that an option, or else a variable, names.
    pub(super) fn named_path(&self, option: &str, variable: &str) -> Option<PathBuf> {
        last_option::<PathBuf>(self.levels, option)
            .or_else(|| self.io.env_var(variable).map(PathBuf::from))
            .map(|path| self.io.resolve_path(path))
    }

    /// Returns the value of two opposite switches; `None` if neither is set.
    pub(super) fn opposite_switches(&self, on: &str, off: &str) -> Result<Option<bool>> {
        let given = |name| self.levels.iter().any(|matches| matches.get_flag(name));
        match (given(on), given(off)) {
            (true, true) => {
                Err(CommandError::usage(format_args!("`--{on}` and `--{off}` exclude each other")))
            }
            (false, false) => Ok(None),
            (on, _) => Ok(Some(on)),
        }
    }

    /// Returns a variable as text.
    pub(super) fn text(&self, variable: &str) -> Result<Option<String>> {
        let text = self.io.env_var(variable).map(|value| value.into_string()).transpose();
        text.map_err(|_| CommandError::config(format_args!("{variable} is not UTF-8")))
    }

    /// Parses a variable.
    pub(super) fn variable<T: FromStr<Err: Display>>(&self, variable: &str) -> Result<Option<T>> {
        let wrong = |error| CommandError::config(format_args!("{variable}: {error}"));
        self.text(variable)?.map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// Parses a boolean variable.
    pub(super) fn switch(&self, variable: &str) -> Result<Option<bool>> {
        match self.text(variable)?.as_deref() {
            None => Ok(None),
            Some("1" | "true") => Ok(Some(true)),
            Some("0" | "false") => Ok(Some(false)),
            Some(other) => Err(CommandError::config(format_args!(
                "{variable} must be `true` or `false`, not `{}`",
                other.escape_debug()
            ))),
        }
    }

    /// Returns the items of a comma-separated variable.
    pub(super) fn list(&self, variable: &str) -> Result<Option<Vec<String>>> {
        let items = |text: String| {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(str::to_owned).collect()
        };
        Ok(self.text(variable)?.map(items))
    }

    /// Returns the values of a repeatable option, else the items of a comma-separated variable.
    pub(super) fn repeated(&self, option: &str, variable: &str) -> Result<Option<Vec<String>>> {
        let levels = self.levels.iter();
        let given = levels.filter_map(|matches| matches.get_many::<String>(option)).flatten();
        let given: Vec<String> = given.cloned().collect();
        if given.is_empty() { self.list(variable) } else { Ok(Some(given)) }
    }

    /// Returns the path in a variable.
    pub(super) fn path(&self, variable: &str) -> Result<Option<PathBuf>> {
        self.io.env_var(variable).map(|path| parse_path(variable, path.into())).transpose()
    }

    /// Returns the paths in a variable, separated as in `PATH`.
    pub(super) fn paths(&self, variable: &str) -> Result<Option<Vec<PathBuf>>> {
        let list = self.io.env_var(variable);
        let parse = |path| parse_path(variable, path);
        list.map(|list| std::env::split_paths(&list).map(parse).collect()).transpose()
    }

    /// Returns the variants that the environment selects, as `GROUP=NAME`.
    pub(super) fn variants(&self) -> Result<Option<BTreeMap<String, String>>> {
        const VARIABLE: &str = "TOOL_SDK_VARIANTS";
        let pair = |item: String| {
            let (group, name) = item.split_once('=').ok_or_else(|| {
                let item = item.escape_debug();
                CommandError::config(format_args!("{VARIABLE} holds `GROUP=NAME`, not `{item}`"))
            })?;
            Ok((group.trim().to_owned(), name.trim().to_owned()))
        };
        let items = self.list(VARIABLE)?;
        items.map(|items| items.into_iter().map(pair).collect()).transpose()
    }
}

fn parse_path(variable: &str, path: PathBuf) -> Result<PathBuf> {
    check_path(path).map_err(|why| CommandError::config(format_args!("{variable}: {why}")))
}
