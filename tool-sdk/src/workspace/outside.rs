//! Paths that are no part of the workspace, for calls that somebody allowed all the same.
//!
//! Such a place is opened like any other: from a handle, name by name, and no link is
//! followed. Its handle is the top of the file system, and the links on the way were
//! followed before anybody was asked.

use std::io;
use std::path::Path;

use super::real::settle;
use super::{Access, Component, Located, Root, Workspace, form};
use crate::error::ToolError;

impl Workspace {
    /// The place that `path` means although it is outside of every root, without links.
    ///
    /// A relative path starts at the first root.
    pub(crate) fn outside(&self, path: &str) -> Result<Located, ToolError> {
        form::check(path)?;
        let asked = self.0.roots[0].real.join(path);
        let failed = |error: io::Error| {
            ToolError::failed(format_args!("cannot find `{}`: {error}", asked.display()))
                .source(error)
        };
        let real = settle(&asked, |path| std::fs::canonicalize(path)).map_err(failed)?;
        // A link from outside may lead back inside.
        if let Some(inside) = self.rebase(&real) {
            return Ok(Located { is_real: true, ..inside });
        }
        let top = real.ancestors().last().unwrap_or(Path::new("/"));
        let root = Root::open(top, Access::Outside)
            .map_err(|error| ToolError::failed("the file system cannot be opened").source(error))?;
        let relative =
            real.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let workspace = self.and(root);
        let root = workspace.0.roots.len() - 1;
        Ok(Located { workspace, root, relative, is_real: true })
    }

    /// Whether a path that is outside of every root is a symbolic link itself.
    pub(crate) fn is_link_outside(&self, path: &str) -> bool {
        let found = self.0.roots[0].real.join(path).symlink_metadata();
        found.is_ok_and(|found| found.is_symlink())
    }
}
