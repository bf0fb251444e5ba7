//! Globs that choose files.

use std::path::Path;

use globset::{GlobBuilder, GlobSet};
use tool_sdk::ToolError;

/// A glob as models write it: without a `/` it is compared with file names, else with paths
/// relative to where a search starts.
pub(super) struct Include {
    glob: GlobSet,
    names_only: bool,
}

impl Include {
    /// Reads `pattern`, which came as the argument `argument`.
    pub(super) fn new(argument: &'static str, pattern: &str) -> Result<Self, ToolError> {
        let refused = |error: globset::Error| {
            ToolError::invalid(argument, error.kind())
                .hint("write a glob such as `*.rs`, `*.{ts,tsx}` or `src/**/*.py`")
        };
        let anchored = pattern.trim_start_matches("./").trim_start_matches('/');
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
