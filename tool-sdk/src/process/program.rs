//! What a child is given, whether it runs once or is kept.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use super::sandbox::{self, Confined, Enforced, Planted, Policy, StandIns, Status};
use super::{ChildEnv, Limits, RunError};

/// A program with its arguments, where it runs, and what it may see and use.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    /// The host's own when nothing is said.
    pub(super) folder: Option<PathBuf>,
    /// What a child of this process may see when nothing is said.
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

    /// What it sees.
    pub(super) fn env(&self) -> Cow<'_, ChildEnv> {
        self.env.as_ref().map_or_else(|| Cow::Owned(ChildEnv::inherited()), Cow::Borrowed)
    }

    /// What is started in its place so that it is confined, and how far that holds.
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

/// How a child is confined; kept for as long as anything of it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Confinement {
    /// Nothing where nothing was wanted.
    pub(super) status: Option<Status>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "no process is kept"))]
    pub(super) stand_ins: StandIns,
    pub(super) planted: Planted,
}

impl Confinement {
    /// Whether what the child leaves behind outlives it, and has to be ended.
    pub(super) fn leaves_some(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.processes != Enforced::Full)
    }
}
