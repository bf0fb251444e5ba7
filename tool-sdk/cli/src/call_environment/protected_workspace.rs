//! The workspace of a command, in which the program's own files are protected.
//!
//! **Invariant:** configuration, approvals and audit log are protected at every path: commands
//! cannot write them, and tools need approval.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tool_sdk_core::{
    Session,
    internal::{is_sweep_due, sweep_outputs},
    prepare_outputs,
};
use tool_sdk_process::sandbox::SandboxPolicy;
use tool_sdk_workspace::Workspace;

use crate::settings::Settings;

/// The workspace and the sandbox policy, with the same protected paths.
pub(super) struct ProtectedWorkspace {
    workspace: Workspace,
    sandbox: SandboxPolicy,
    output_dir: Option<PathBuf>,
}

impl ProtectedWorkspace {
    /// Protects the configuration file and the state folder.
    pub(super) fn new(settings: &Settings) -> Self {
        let mut folders = Self {
            workspace: settings.workspace_with_journal(),
            sandbox: settings.sandbox.clone(),
            output_dir: None,
        };
        if let Some(path) = &settings.config_path {
            folders = folders.protect_if_present(path);
        }
        if let Some(dir) = &settings.state_dir {
            let outputs = dir.join("outputs");
            sweep_if_due(&outputs, settings.limits.outputs_max_age);
            folders.output_dir = Some(outputs);
            folders = folders.protect(dir);
        }
        folders
    }

    /// Protects a file or folder from tools and from commands.
    pub(super) fn protect(self, path: &Path) -> Self {
        let (workspace, sandbox) =
            (self.workspace.protect(path), self.sandbox.with_protected(path));
        Self { workspace, sandbox, ..self }
    }

    /// Protects a file that may be missing. A missing file is only protected from tools, because
    /// the sandbox cannot protect it while a command runs.
    pub(super) fn protect_if_present(self, path: &Path) -> Self {
        if path.exists() {
            return self.protect(path);
        }
        Self { workspace: self.workspace.protect(path), ..self }
    }

    /// Returns the folder for outputs that were truncated.
    pub(super) fn output_dir(&self) -> Option<&Path> {
        self.output_dir.as_deref()
    }

    /// Splits into the workspace for sessions and the sandbox policy.
    pub(super) fn into_parts(self) -> (SessionWorkspace, SandboxPolicy) {
        (SessionWorkspace { workspace: self.workspace, output_dir: self.output_dir }, self.sandbox)
    }
}

/// The workspace, to which each session adds its stored outputs as readable.
#[derive(Clone)]
pub(crate) struct SessionWorkspace {
    workspace: Workspace,
    output_dir: Option<PathBuf>,
}

impl SessionWorkspace {
    /// Adds the workspace to a session. Outputs that earlier calls of the session stored can be
    /// read without approval.
    pub(crate) fn attach_to(&self, session: Session) -> Session {
        let workspace = self.workspace.clone();
        let kept =
            self.output_dir.as_deref().and_then(|dir| prepare_outputs(dir, session.id()).ok());
        match kept.and_then(|dir| workspace.clone().with_read_only(dir).ok()) {
            Some(readable) => session.with_service(readable),
            None => session.with_service(workspace),
        }
    }

    /// Adds the workspace to a session together with folders that tools may only read. A folder is left
    /// out if a root contains it, or if it contains what `is_refused` names.
    #[cfg(feature = "mcp")]
    pub(crate) fn attach_with_folders(
        &self,
        session: Session,
        folders: &[PathBuf],
        is_refused: &dyn Fn(&Path) -> bool,
    ) -> Session {
        let mut workspace = self.workspace.clone();
        for folder in folders {
            let Ok(real) = folder.canonicalize() else { continue };
            let is_inside = self.workspace.roots().any(|root| real.starts_with(root));
            if is_inside || is_refused(&real) {
                tracing::debug!(folder = %real.display(), "a root of the client is not used");
                continue;
            }
            if let Ok(readable) = workspace.clone().with_read_only(&real) {
                workspace = readable;
            }
        }
        Self { workspace, output_dir: self.output_dir.clone() }.attach_to(session)
    }
}

/// Removes old stored outputs on a background thread, at most once an hour. If the program ends
/// earlier, the next one continues.
fn sweep_if_due(folder: &Path, max_age: Duration) {
    if is_sweep_due(folder) {
        let folder = folder.to_owned();
        drop(std::thread::spawn(move || sweep_outputs(&folder, max_age)));
    }
}
