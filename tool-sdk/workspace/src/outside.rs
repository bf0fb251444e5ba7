//! Paths outside of the workspace, for calls that the user approved explicitly.
//!
//! Such a path is opened like any other: relative to a handle, component by component, without
//! following links. The handle is that of the file system root, and links were resolved before
//! the approval was requested.

use std::io;
use std::path::Path;

use super::realpath::canonicalize_existing;
use super::{Component, ResolvedPath, Root, RootAccess, Workspace, path_syntax};
use crate::error::WorkspaceError;

impl Workspace {
    /// Resolves and canonicalizes a path outside of every root.
    ///
    /// A relative path starts at the first root.
    #[doc(hidden)]
    pub fn resolve_outside(&self, path: &str) -> Result<ResolvedPath, WorkspaceError> {
        path_syntax::validate_path(path)?;
        let asked = self.0.roots[0].canonical.join(path);
        let failed = |error: io::Error| {
            WorkspaceError::failed(format_args!("cannot find `{}`: {error}", asked.display()))
                .with_source(error)
        };
        let real =
            canonicalize_existing(&asked, |path| std::fs::canonicalize(path)).map_err(failed)?;
        // A link outside of the workspace may lead back into it.
        if let Some(inside) = self.resolve_absolute(&real) {
            return Ok(ResolvedPath { is_canonical: true, ..inside });
        }
        let top = real.ancestors().last().unwrap_or(Path::new("/"));
        let root = Root::open(top, RootAccess::Outside).map_err(|error| {
            WorkspaceError::failed("cannot open the root of the file system").with_source(error)
        })?;
        let relative =
            real.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let workspace = self.with_root(root);
        let root = workspace.0.roots.len() - 1;
        Ok(ResolvedPath { workspace, root, relative, is_canonical: true })
    }

    /// Returns whether a path outside of every root is itself a symbolic link.
    #[doc(hidden)]
    pub fn is_link_outside(&self, path: &str) -> bool {
        let found = self.0.roots[0].canonical.join(path).symlink_metadata();
        found.is_ok_and(|found| found.is_symlink())
    }
}
