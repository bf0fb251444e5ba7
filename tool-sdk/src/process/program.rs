//! What a child is given, whether it runs once or is kept.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use super::sandbox::{self, Policy, StandIns, Status};
use super::{ChildEnv, Limits, RunError};

/// A program with its arguments, where it runs, and what it may see and use.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    /// The host's own when nothing is said.
    pub(super) folder: Option<PathBuf>,
    pub(super) env: ChildEnv,
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
            env: ChildEnv::inherited(),
            limits: Limits::default(),
            sandbox: Policy::default(),
        }
    }

    /// What is started in its place so that it is confined, how far that holds, and what is
    /// kept for as long as anything of it runs.
    pub(super) fn confined(&self) -> Result<(Cow<'_, Self>, Option<Status>, StandIns), RunError> {
        let confined =
            sandbox::confine(&self.sandbox, &self.name, &self.args).map_err(RunError::Sandbox)?;
        let Some(confined) = confined else {
            return Ok((Cow::Borrowed(self), None, StandIns::default()));
        };
        let program = match confined.start {
            Some((name, args)) => Cow::Owned(Self { name, args, ..self.clone() }),
            None => Cow::Borrowed(self),
        };
        Ok((program, Some(confined.status), confined.stand_ins))
    }
}
