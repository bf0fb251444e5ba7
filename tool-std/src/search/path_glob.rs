//! Globs that select files in a search.

use std::borrow::Cow;
use std::path::Path;

use globset::{ErrorKind, GlobBuilder, GlobSet};
use tool_sdk::{ResolvedPath, ToolError, Workspace};

use crate::read_task::ReadTask;

/// A file glob: without a `/` it is matched against file names, else against paths relative to the
/// start of the search.
pub(crate) struct PathGlob {
    glob: GlobSet,
    matches_names_only: bool,
}

impl PathGlob {
    /// Parses `pattern`, the value of the argument `argument`.
    pub(crate) fn new(
        argument: &'static str,
        pattern: &str,
        look: &ReadTask<'_>,
    ) -> Result<Self, ToolError> {
        let refused = |error: globset::Error| {
            let told = match error.kind() {
                // The error of the regular expression means nothing to the author of the glob.
                ErrorKind::Regex(_) => {
                    ToolError::invalid(argument, "it is nested too deeply, or too long")
                }
                kind => ToolError::invalid(argument, kind),
            };
            told.hint("write a glob such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`").source(error)
        };
        let relative = relative_glob(pattern, look.workspace, &look.place).ok_or_else(|| {
            ToolError::invalid(
                argument,
                format_args!("`{pattern}` leads out of the searched folder"),
            )
            .hint("name the folder as `path`, and write the glob relative to it")
        })?;
        let anchored = relative.trim_start_matches("./").trim_start_matches('/');
        let glob = GlobBuilder::new(anchored).literal_separator(true).build().map_err(refused)?;
        // A set of one glob checks the file extension before it runs a regular expression.
        let glob = GlobSet::builder().add(glob).build().map_err(refused)?;
        Ok(Self { glob, matches_names_only: !pattern.contains('/') })
    }

    pub(crate) fn matches_path(&self, relative: &Path) -> bool {
        match (self.matches_names_only, relative.file_name()) {
            (true, Some(name)) => self.glob.is_match(name),
            _ => self.glob.is_match(relative),
        }
    }
}

/// Makes the glob relative to `start`; returns `None` when nothing there can match. A leading `/`
/// means the start, unless the path behind it is in the workspace.
fn relative_glob<'p>(
    pattern: &'p str,
    workspace: &Workspace,
    start: &ResolvedPath,
) -> Option<Cow<'p, str>> {
    if pattern.split('/').any(|name| name == "..") {
        return None;
    }
    let plain = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let (folder, rest) = pattern.split_at(pattern[..plain].rfind('/').unwrap_or(0));
    let place = match Path::new(folder).is_absolute() {
        true => workspace.resolve(folder).ok(),
        false => None,
    };
    let Some(place) = place else { return Some(pattern.into()) };
    let place = place.absolute_path();
    let names = place.strip_prefix(start.absolute_path()).ok()?.iter();
    let names: Vec<Cow<'_, str>> = names.map(|name| name.to_string_lossy()).collect();
    Some(format!("/{}{rest}", names.join("/")).into())
}
