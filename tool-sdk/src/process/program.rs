//! What foreground and background commands have in common: program, arguments, environment,
//! limits and sandbox policy.
//!
//! **Invariant:** a command is started as [`CommandSpec::wrap_in_sandbox`] returns it, never
//! without consulting its policy.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use super::sandbox::{self, Confined, Enforced, Planted, Policy, StandIns, Status};
use super::{ChildEnv, Limits, RunError};

/// A program with its arguments, working directory, environment, limits and sandbox policy.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    /// `None` is that of the host.
    pub(super) folder: Option<PathBuf>,
    /// `None` is [`ChildEnv::from_host`].
    pub(super) env: Option<ChildEnv>,
    pub(super) limits: Limits,
    pub(super) sandbox: Policy,
}

impl Program {
    pub(super) fn new<A: Into<OsString>>(
        name: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            name: name.into(),
            args: args.into_iter().map(Into::into).collect(),
            folder: None,
            env: None,
            limits: Limits::default(),
            sandbox: Policy::default(),
        }
    }

    /// Returns the environment of the child.
    pub(super) fn env(&self) -> Cow<'_, ChildEnv> {
        self.env.as_ref().map_or_else(|| Cow::Owned(ChildEnv::inherited()), Cow::Borrowed)
    }

    /// Returns the command that starts this one in its sandbox, and the active sandbox.
    pub(super) fn confined(&self) -> Result<(Cow<'_, Self>, Confinement), RunError> {
        let confined =
            sandbox::confine(&self.sandbox, &self.name, &self.args).map_err(RunError::Sandbox)?;
        let Some(Confined { start, status, stand_ins, planted }) = confined else {
            return Ok((Cow::Borrowed(self), Confinement::default()));
        };
        let program = match start {
            Some((name, args)) => Cow::Owned(Self { name, args, ..self.clone() }),
            None => Cow::Borrowed(self),
        };
        Ok((program, Confinement { status: Some(status), stand_ins, planted }))
    }
}

/// The sandbox of a child; kept until its last process has exited.
#[derive(Clone, Debug, Default)]
pub(super) struct Confinement {
    /// `None` without a sandbox.
    pub(super) status: Option<Status>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no background processes"))]
    pub(super) stand_ins: StandIns,
    pub(super) planted: Planted,
}

impl Confinement {
    /// Returns whether descendants can outlive the child in its sandbox and have to be killed.
    pub(super) fn leaves_some(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.processes != Enforced::Full)
    }
}
