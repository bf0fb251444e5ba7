//! A temporary folder for examples, which is removed with its contents.

use std::fs::{create_dir, remove_dir_all};
use std::io;
use std::path::PathBuf;
use std::process;

use crate::context::Session;
use crate::workspace::Workspace;

/// The maximum number of names that are tried, because several checks may run at once.
const TRIES: usize = 10_000;

pub(super) struct Place {
    folder: PathBuf,
    workspace: Workspace,
}

impl Place {
    pub(super) fn new() -> io::Result<Self> {
        let folder = fresh()?;
        let workspace = Workspace::open([&folder]).map_err(io::Error::other)?;
        Ok(Self { folder, workspace })
    }

    pub(super) fn lend(&self, session: Session) -> Session {
        session.lend(self.workspace.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.folder);
    }
}

/// Creates a folder with an unused name.
fn fresh() -> io::Result<PathBuf> {
    let (base, process) = (std::env::temp_dir(), process::id());
    for number in 0..TRIES {
        let folder = base.join(format!("tool-sdk-examples-{process}-{number}"));
        match create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
