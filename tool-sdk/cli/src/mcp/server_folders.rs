//! The folders that are passed to MCP servers: roots that servers may ask for, and the writable
//! and protected paths of their sandboxes.

use std::path::PathBuf;

use clap::ArgMatches;

use super::server_entry::{ServerEntries, ServerEntry};
use crate::exit::Result;
use crate::settings::ResolvedSettings;
use crate::{Io, config_file, paths};
use tool_sdk_process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};

/// The folders for servers.
#[derive(Debug, Default)]
pub(super) struct ServerFolders {
    pub(super) roots: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl ServerFolders {
    /// Resolves the folders for `servers`. `levels` are the parsed options from left to right.
    pub(super) fn resolve(
        servers: &ServerEntries,
        levels: &[&ArgMatches],
        io: &Io<'_>,
    ) -> Result<Self> {
        let roots = paths::workspace_roots(levels, io);
        if !servers.iter().any(ServerEntry::is_sandboxed) {
            return Ok(Self { roots, ..Self::default() });
        }
        let settings = ResolvedSettings::load(levels, io)?;
        let hooks = settings.hooks.map(|hooks| {
            let folder = roots.first().cloned().unwrap_or_else(|| io.current_dir.clone());
            hooks.commands.in_folder(folder).command_files()
        });
        let own =
            config_file::config_path(levels, io).into_iter().chain(hooks.into_iter().flatten());
        // A missing file cannot be protected while a process runs.
        let own = own.filter(|path| path.exists());
        let kept = paths::state_dir(levels, io).into_iter().chain(settings.audit);
        let protected = own.chain(kept).collect();
        let writable = match &settings.writable {
            Some(folders) => intersect_folders(&resolve_links(&roots), &resolve_links(folders)),
            None => resolve_links(&roots),
        };
        Ok(Self { roots, writable, protected })
    }

    /// Like [`resolve`](Self::resolve), but with no writable folders after an error, which the
    /// caller reports later.
    pub(super) fn resolve_or_empty(
        servers: &ServerEntries,
        levels: &[&ArgMatches],
        io: &Io<'_>,
    ) -> Self {
        let roots = || Self { roots: paths::workspace_roots(levels, io), ..Self::default() };
        Self::resolve(servers, levels, io).unwrap_or_else(|_| roots())
    }

    /// Returns the sandbox policy for a server.
    pub(super) fn sandbox_policy(&self, mode: SandboxMode, level: SandboxLevel) -> SandboxPolicy {
        let policy = self
            .writable
            .iter()
            .fold(SandboxPolicy::new(mode, level), SandboxPolicy::with_writable);
        self.protected.iter().fold(policy, SandboxPolicy::with_protected)
    }
}

/// Canonicalizes the folders, because mounts need paths without links.
fn resolve_links(folders: &[PathBuf]) -> Vec<PathBuf> {
    let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
    folders.iter().map(real).collect()
}

/// Returns the folders that lie in both lists.
fn intersect_folders(some: &[PathBuf], others: &[PathBuf]) -> Vec<PathBuf> {
    let within = |inner: &[PathBuf], outer: &[PathBuf]| -> Vec<PathBuf> {
        let is_within = |folder: &&PathBuf| outer.iter().any(|outer| folder.starts_with(outer));
        inner.iter().filter(is_within).cloned().collect()
    };
    [within(some, others), within(others, some)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_writes_where_tools_may_write() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        for (roots, writable, expected) in [
            (&["/a"][..], &["/a/b"][..], &["/a/b"][..]),
            (&["/a/b", "/c"], &["/a"], &["/a/b"]),
            (&["/a"], &["/b"], &[]),
            (&["/a"], &[], &[]),
        ] {
            assert_eq!(intersect_folders(&paths(roots), &paths(writable)), paths(expected));
        }
    }
}
