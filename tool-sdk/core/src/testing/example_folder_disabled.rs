//! The stub for builds without the feature `workspace`.

use std::io;

use crate::context::Session;

pub(super) struct ExampleFolder;

impl ExampleFolder {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "same signature as with the feature `workspace`")]
    pub(super) fn lend_to(&self, session: Session) -> Session {
        session
    }
}
