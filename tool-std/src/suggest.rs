//! Suggests existing file names when a path does not exist ("did you mean ...?").
//!
//! **Invariant:** a name that the read rules hide is never suggested.

use std::ffi::OsString;

use tool_sdk::{
    ErrorKind, ResolvedPath, ToolError, VisibilityFilter, WorkStop, WorkspaceErrorKind,
};

use crate::text::similar_names;

/// The maximum number of directory entries that are compared with the missing name.
const MAX_NAMES: usize = 10_000;

/// Adds a hint with similar file names to a "not found" error for `place`.
///
/// Only names that the visibility filter shows are suggested, because a name reveals that the file
/// exists.
pub(crate) fn with_suggestions(
    error: ToolError,
    place: &ResolvedPath,
    sight: &VisibilityFilter,
    stop: &WorkStop,
) -> ToolError {
    let (ErrorKind::NotFound, Some(folder), Some(name)) =
        (error.kind(), place.parent(), place.file_name())
    else {
        return error;
    };
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(found) if found.kind() == WorkspaceErrorKind::NotFound => {
            return error.hint(format_args!("there is no folder `{}` either", folder.display()));
        }
        Err(found) if found.kind() == WorkspaceErrorKind::Denied => {
            let folder = folder.display();
            return error.hint(format_args!("cannot list `{folder}` to suggest similar names"));
        }
        Err(found) => return error.hint(found.message()),
    };
    let name = name.to_string_lossy();
    let is_shown = |name: &OsString| {
        let there = folder.join(name);
        sight.shows_everything() || sight.shows(&there.rule_path(), &there.absolute_path())
    };
    let names: Vec<OsString> = entries
        .take(MAX_NAMES)
        .take_while(|_| !stop.is_stopped())
        .filter_map(|entry| Some(entry.ok()?.name))
        .filter(is_shown)
        .collect();
    if names.iter().any(|there| there.to_str().is_none() && there.to_string_lossy() == name) {
        return error.hint(
            "the name of the file is not valid UTF-8 and cannot be sent; rename the file with a \
             command",
        );
    }
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    let meant: Vec<_> = similar_names::closest_names(&name, names)
        .iter()
        .map(|name| format!("`{}`", folder.join(name).display()))
        .collect();
    if meant.is_empty() {
        error
    } else {
        error.hint(format_args!("did you mean {}?", meant.join(" or ")))
    }
}
