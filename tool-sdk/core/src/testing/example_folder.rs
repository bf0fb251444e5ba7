//! A temporary folder for examples, which is removed with its contents.

use std::fs::{create_dir, remove_dir_all};
use std::io;
use std::path::PathBuf;
use std::process;

use tool_sdk_workspace::Workspace;

use crate::context::Session;

/// The maximum number of names that are tried, because several checks may run at once.
const MAX_ATTEMPTS: usize = 10_000;

pub(super) struct ExampleFolder {
    folder: PathBuf,
    workspace: Workspace,
}

impl ExampleFolder {
    pub(super) fn new() -> io::Result<Self> {
        let folder = create_unique_folder()?;
        let workspace = Workspace::open([&folder]).map_err(io::Error::other)?;
        Ok(Self { folder, workspace })
    }

    pub(super) fn lend_to(&self, session: Session) -> Session {
        session.with_service(self.workspace.clone())
    }
}

impl Drop for ExampleFolder {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.folder);
    }
}

/// Creates a folder with an unused name.
fn create_unique_folder() -> io::Result<PathBuf> {
    let (base, process) = (std::env::temp_dir(), process::id());
    for number in 0..MAX_ATTEMPTS {
        let folder = base.join(format!("tool-sdk-examples-{process}-{number}"));
        match create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
