//! What foreground and background commands have in common: program, arguments, environment,
//! limits and sandbox policy.
//!
//! **Invariant:** a command is started as [`CommandSpec::wrap_in_sandbox`] returns it, never
//! without consulting its policy.

use std::borrow::Cow;
use std::ffi::OsString;

use super::sandbox::{
    self, ConfinedCommand, EnforcementLevel, PlaceholderDirs, ProtectedBaseline, SandboxPolicy,
    SandboxStatus,
};
use super::working_dir::WorkingDir;
use super::{ChildEnv, ResourceLimits, RunError};

/// A program with its arguments, working directory, environment, limits and sandbox policy.
#[derive(Clone, Debug)]
pub(super) struct CommandSpec {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    /// `None` is that of the host.
    pub(super) current_dir: Option<WorkingDir>,
    /// `None` is [`ChildEnv::from_host`].
    pub(super) env: Option<ChildEnv>,
    pub(super) limits: ResourceLimits,
    pub(super) sandbox: SandboxPolicy,
}

impl CommandSpec {
    pub(super) fn new<A: Into<OsString>>(
        name: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: name.into(),
            args: args.into_iter().map(Into::into).collect(),
            current_dir: None,
            env: None,
            limits: ResourceLimits::default(),
            sandbox: SandboxPolicy::default(),
        }
    }

    /// Returns the environment of the child.
    pub(super) fn effective_env(&self) -> Cow<'_, ChildEnv> {
        self.env.as_ref().map_or_else(|| Cow::Owned(ChildEnv::from_host()), Cow::Borrowed)
    }

    /// Returns the command that starts this one in its sandbox, and the active sandbox.
    pub(super) fn wrap_in_sandbox(&self) -> Result<(Cow<'_, Self>, ActiveSandbox), RunError> {
        let confined = sandbox::confine_command(&self.sandbox, &self.program, &self.args)
            .map_err(RunError::Sandbox)?;
        let Some(ConfinedCommand {
            command: start,
            status,
            placeholders: stand_ins,
            protected_baseline: planted,
        }) = confined
        else {
            return Ok((Cow::Borrowed(self), ActiveSandbox::default()));
        };
        let program = match start {
            Some((name, args)) => Cow::Owned(Self { program: name, args, ..self.clone() }),
            None => Cow::Borrowed(self),
        };
        Ok((
            program,
            ActiveSandbox {
                status: Some(status),
                placeholders: stand_ins,
                protected_baseline: planted,
            },
        ))
    }
}

/// The sandbox of a child; kept until its last process has exited.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveSandbox {
    /// `None` without a sandbox.
    pub(super) status: Option<SandboxStatus>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no background processes"))]
    pub(super) placeholders: PlaceholderDirs,
    pub(super) protected_baseline: ProtectedBaseline,
}

impl ActiveSandbox {
    /// Returns whether descendants can outlive the child in its sandbox and have to be killed.
    pub(super) fn may_leave_processes(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.processes != EnforcementLevel::Full)
    }
}
