//! Globs that choose files.

use std::borrow::Cow;
use std::path::Path;

use globset::{ErrorKind, GlobBuilder, GlobSet};
use tool_sdk::{Located, ToolError, Workspace};

use crate::look::Look;

/// A glob as models write it: without a `/` it is compared with file names, else with paths
/// relative to where a search starts.
pub(super) struct Include {
    glob: GlobSet,
    names_only: bool,
}

impl Include {
    /// Reads `pattern`, which came as the argument `argument`, for a search of the place.
    pub(super) fn new(
        argument: &'static str,
        pattern: &str,
        look: &Look<'_>,
    ) -> Result<Self, ToolError> {
        let refused = |error: globset::Error| {
            let told = match error.kind() {
                // What a matcher makes of it means nothing to who wrote the glob.
                ErrorKind::Regex(_) => {
                    ToolError::invalid(argument, "it is nested too deeply, or too long")
                }
                kind => ToolError::invalid(argument, kind),
            };
            told.hint("write a glob such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`").source(error)
        };
        let relative = below(pattern, look.workspace, &look.place).ok_or_else(|| {
            ToolError::invalid(argument, format_args!("`{pattern}` leads out of what is searched"))
                .hint("name the folder as `path`, and write the glob relative to it")
        })?;
        let anchored = relative.trim_start_matches("./").trim_start_matches('/');
        let glob = GlobBuilder::new(anchored).literal_separator(true).build().map_err(refused)?;
        // A set of one: it looks at the end of a name before it runs an expression.
        let glob = GlobSet::builder().add(glob).build().map_err(refused)?;
        Ok(Self { glob, names_only: !pattern.contains('/') })
    }

    pub(super) fn has(&self, relative: &Path) -> bool {
        match (self.names_only, relative.file_name()) {
            (true, Some(name)) => self.glob.is_match(name),
            _ => self.glob.is_match(relative),
        }
    }
}

/// The glob relative to `start`; `None` when nothing there can match. A leading `/` means the
/// start, unless what follows it leads into the workspace.
fn below<'p>(pattern: &'p str, workspace: &Workspace, start: &Located) -> Option<Cow<'p, str>> {
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
    let place = place.absolute();
    let names = place.strip_prefix(start.absolute()).ok()?.iter();
    let names: Vec<Cow<'_, str>> = names.map(|name| name.to_string_lossy()).collect();
    Some(format!("/{}{rest}", names.join("/")).into())
}
