//! The folders that are passed to MCP servers: roots that servers may ask for, and the writable
//! and protected paths of their sandboxes.

use std::path::PathBuf;

use tool_sdk_process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};

use super::server_entry::ServerEntry;
use crate::settings::Settings;

/// The folders for servers.
#[derive(Debug, Default)]
pub(crate) struct ServerFolders {
    pub(super) roots: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl ServerFolders {
    /// Resolves the folders for these servers.
    pub(super) fn resolve<'e>(
        entries: impl IntoIterator<Item = &'e ServerEntry>,
        settings: &Settings,
    ) -> Self {
        match entries.into_iter().any(ServerEntry::is_sandboxed) {
            true => Self::resolve_sandboxed(settings),
            false => Self { roots: settings.roots.clone(), ..Self::default() },
        }
    }

    /// Resolves the folders for servers that run in a sandbox.
    pub(super) fn resolve_sandboxed(settings: &Settings) -> Self {
        let roots = settings.roots.clone();
        let hooks = settings.hooks.iter().flat_map(|hooks| hooks.commands.command_files());
        // A missing file cannot be protected while a process runs.
        let own = settings.config_path.clone().into_iter().chain(hooks).filter(|it| it.exists());
        let kept = settings.state_dir.iter().chain(&settings.audit).cloned();
        let writable = match &settings.writable {
            Some(folders) => intersect_folders(&resolve_links(&roots), &resolve_links(folders)),
            None => resolve_links(&roots),
        };
        Self { roots, writable, protected: own.chain(kept).collect() }
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
