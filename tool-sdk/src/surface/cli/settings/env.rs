//! Parses the environment variables of settings.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use super::check_path;
use crate::surface::cli::Io;
use crate::surface::cli::exit::{CommandError, Result};

/// Returns a variable as text.
pub(super) fn text(io: &Io<'_>, variable: &str) -> Result<Option<String>> {
    io.env_var(variable)
        .map(|value| value.into_string())
        .transpose()
        .map_err(|_| CommandError::config(format_args!("{variable} is not UTF-8")))
}

/// Parses a variable.
pub(super) fn parse<T: FromStr<Err: Display>>(io: &Io<'_>, variable: &str) -> Result<Option<T>> {
    let wrong = |error| CommandError::config(format_args!("{variable}: {error}"));
    text(io, variable)?.map(|text| text.parse().map_err(wrong)).transpose()
}

/// Parses a boolean variable.
pub(super) fn switch(io: &Io<'_>, variable: &str) -> Result<Option<bool>> {
    match text(io, variable)?.as_deref() {
        None => Ok(None),
        Some("1" | "true") => Ok(Some(true)),
        Some("0" | "false") => Ok(Some(false)),
        Some(other) => {
            let other = other.escape_debug();
            Err(CommandError::config(format_args!(
                "{variable} must be `true` or `false`, not `{other}`"
            )))
        }
    }
}

/// Returns the items of a comma-separated variable.
pub(super) fn list(io: &Io<'_>, variable: &str) -> Result<Option<Vec<String>>> {
    let items = |text: String| {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    Ok(text(io, variable)?.map(items))
}

/// Returns the path in a variable.
pub(super) fn path(io: &Io<'_>, variable: &str) -> Result<Option<PathBuf>> {
    io.env_var(variable).map(|path| parse_path(variable, path.into())).transpose()
}

/// Returns the paths in a variable, separated as in `PATH`.
pub(super) fn paths(io: &Io<'_>, variable: &str) -> Result<Option<Vec<PathBuf>>> {
    let split =
        |list| std::env::split_paths(&list).map(|path| parse_path(variable, path)).collect();
    io.env_var(variable).map(split).transpose()
}

fn parse_path(variable: &str, path: PathBuf) -> Result<PathBuf> {
    check_path(path).map_err(|why| CommandError::config(format_args!("{variable}: {why}")))
}

/// Returns the variants that the environment selects, as `GROUP=NAME`.
pub(super) fn variants(io: &Io<'_>) -> Result<Option<BTreeMap<String, String>>> {
    const VARIABLE: &str = "TOOL_SDK_VARIANTS";
    let pair = |item: String| {
        let (group, name) = item.split_once('=').ok_or_else(|| {
            let item = item.escape_debug();
            CommandError::config(format_args!("{VARIABLE} holds `GROUP=NAME`, not `{item}`"))
        })?;
        Ok((group.trim().to_owned(), name.trim().to_owned()))
    };
    let items = list(io, VARIABLE)?;
    items.map(|items| items.into_iter().map(pair).collect()).transpose()
}
