//! The folders of a command: those that its tools may touch, and those that are the program's
//! own.
//!
//! **Invariant:** what is configured, approved and written down is protected wherever it lies:
//! it is not for commands to write, and no matter of course for tools.

use std::path::{Path, PathBuf};

use clap::ArgMatches;

use super::super::{Io, config, place};
use crate::context::Session;
use crate::process::sandbox::Policy;
use crate::truncate::{RETENTION, is_due, prepare_outputs, sweep};
use crate::workspace::Workspace;

/// The folders that tools may touch, and what confines commands to them.
pub(super) struct Folders {
    workspace: Workspace,
    sandbox: Policy,
    outputs: Option<PathBuf>,
}

impl Folders {
    /// The folders that tools may touch, with what the program keeps protected. `levels` are
    /// the options from left to right.
    pub(super) fn new(
        workspace: Workspace,
        sandbox: Policy,
        levels: &[&ArgMatches],
        io: &Io<'_>,
    ) -> Self {
        let mut folders = Self { workspace, sandbox, outputs: None };
        if let Some(path) = config::path(levels, io) {
            folders = folders.protect_when_there(&path);
        }
        if let Some(dir) = place::state_dir(levels, io) {
            let outputs = dir.join("outputs");
            sweep_now_and_then(&outputs);
            folders.outputs = Some(outputs);
            folders = folders.protect(&dir);
        }
        folders
    }

    /// Protects one more file or folder, from tools and from commands.
    pub(super) fn protect(self, path: &Path) -> Self {
        let (workspace, sandbox) = (self.workspace.protect(path), self.sandbox.protect(path));
        Self { workspace, sandbox, ..self }
    }

    /// The same for a file that may not be there: what is not there yet cannot be held while a
    /// command runs.
    pub(super) fn protect_when_there(self, path: &Path) -> Self {
        if path.exists() {
            return self.protect(path);
        }
        Self { workspace: self.workspace.protect(path), ..self }
    }

    /// Where calls keep what was too long to show.
    pub(super) fn outputs(&self) -> Option<&Path> {
        self.outputs.as_deref()
    }

    /// What is lent to sessions, one by one, and to all of them.
    pub(super) fn split(self) -> (Readable, Policy) {
        (Readable { workspace: self.workspace, outputs: self.outputs }, self.sandbox)
    }
}

/// The folders that tools may touch, as each session sees them.
pub(in super::super) struct Readable {
    workspace: Workspace,
    outputs: Option<PathBuf>,
}

impl Readable {
    /// Lends the folders; what an earlier call of the session kept may be read without asking.
    pub(in super::super) fn lend(&self, session: Session) -> Session {
        let workspace = self.workspace.clone();
        let kept = self.outputs.as_deref().and_then(|dir| prepare_outputs(dir, session.id()).ok());
        match kept.and_then(|dir| workspace.clone().readable(dir).ok()) {
            Some(readable) => session.lend(readable),
            None => session.lend(workspace),
        }
    }
}

/// Removes outputs that nobody came back for, at most once an hour. Nobody waits for it; whoever
/// ends before finds them next time.
fn sweep_now_and_then(folder: &Path) {
    if is_due(folder) {
        let folder = folder.to_owned();
        drop(std::thread::spawn(move || sweep(&folder, RETENTION)));
    }
}
