//! The folders that are passed to MCP servers: roots that servers may ask for, and the writable
//! and protected paths of their sandboxes.

use std::path::PathBuf;

use clap::ArgMatches;

use super::super::exit::Result;
use super::super::guard::Guard;
use super::super::{Io, config, place};
use super::entry::{Entry, Servers};
use crate::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};

/// The folders for servers.
#[derive(Debug, Default)]
pub(super) struct Folders {
    pub(super) roots: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl Folders {
    /// Resolves the folders for `servers`. `levels` are the parsed options from left to right.
    pub(super) fn of(servers: &Servers, levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        let roots = place::roots(levels, io);
        if !servers.iter().any(Entry::is_confined) {
            return Ok(Self { roots, ..Self::default() });
        }
        let guard = Guard::load(levels, io)?;
        let hooks = guard.hooks.map(|hooks| {
            let folder = roots.first().cloned().unwrap_or_else(|| io.current_dir.clone());
            hooks.commands.in_folder(folder).files()
        });
        let own = config::path(levels, io).into_iter().chain(hooks.into_iter().flatten());
        // A missing file cannot be protected while a process runs.
        let own = own.filter(|path| path.exists());
        let kept = place::state_dir(levels, io).into_iter().chain(guard.audit);
        let protected = own.chain(kept).collect();
        let writable = match &guard.writable {
            Some(folders) => in_both(&real(&roots), &real(folders)),
            None => real(&roots),
        };
        Ok(Self { roots, writable, protected })
    }

    /// Like [`resolve`](Self::resolve), but with no writable folders after an error, which the
    /// caller reports later.
    pub(super) fn or_none(servers: &Servers, levels: &[&ArgMatches], io: &Io<'_>) -> Self {
        let roots = || Self { roots: place::roots(levels, io), ..Self::default() };
        Self::of(servers, levels, io).unwrap_or_else(|_| roots())
    }

    /// Returns the sandbox policy for a server.
    pub(super) fn policy(&self, mode: SandboxMode, level: SandboxLevel) -> SandboxPolicy {
        let policy = self
            .writable
            .iter()
            .fold(SandboxPolicy::new(mode, level), SandboxPolicy::with_writable);
        self.protected.iter().fold(policy, SandboxPolicy::with_protected)
    }
}

/// Canonicalizes the folders, because mounts need paths without links.
fn real(folders: &[PathBuf]) -> Vec<PathBuf> {
    let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
    folders.iter().map(real).collect()
}

/// Returns the folders that lie in both lists.
fn in_both(some: &[PathBuf], others: &[PathBuf]) -> Vec<PathBuf> {
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
            assert_eq!(in_both(&paths(roots), &paths(writable)), paths(expected));
        }
    }
}
