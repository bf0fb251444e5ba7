//! What a child is given, whether it runs once or is kept.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{ChildEnv, Limits};

/// A program with its arguments, where it runs, and what it may see and use.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    /// The host's own when nothing is said.
    pub(super) folder: Option<PathBuf>,
    pub(super) env: ChildEnv,
    pub(super) limits: Limits,
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
        }
    }
}
