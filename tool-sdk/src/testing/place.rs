//! An empty folder for examples, which goes away with them.

use std::fs::{create_dir, remove_dir_all};
use std::io;
use std::path::PathBuf;
use std::process;

use crate::context::Session;
use crate::workspace::Workspace;

/// How many names are tried: as many checks may run at once.
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

/// A folder that was not there before.
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
