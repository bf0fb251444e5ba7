//! Folder handles on other systems: entries are opened by name through cap-std, which confines
//! them to the folder.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};

use super::FolderEntry;
use crate::FileKind;

pub(super) struct FolderHandle {
    dir: Dir,
    /// The device on which all entries must be, if the walk stays on one file system.
    required_device: Option<u64>,
}

/// A shared handle of the parent folder of an entry.
#[derive(Clone)]
pub(super) struct ParentFolder(Arc<FolderHandle>);

impl FolderHandle {
    pub(super) fn from_dir(dir: Dir, same_file_system: bool) -> io::Result<Self> {
        let required_device = if same_file_system { device(&dir)? } else { None };
        Ok(Self { dir, required_device })
    }

    pub(super) fn entries(self) -> io::Result<Vec<FolderEntry>> {
        let parent = ParentFolder(Arc::new(self));
        let entry = |entry: io::Result<cap_std::fs::DirEntry>| {
            let entry = entry?;
            let kind = FileKind::from_file_type(entry.file_type()?);
            Ok(FolderEntry { name: entry.file_name(), kind, parent: parent.clone() })
        };
        parent.0.dir.entries()?.map(entry).collect()
    }
}

impl ParentFolder {
    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // Do not block on a pipe without a writer.
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        Ok(self.0.dir.open_with(name, &options)?.into_std())
    }

    pub(super) fn open_folder(&self, name: &OsStr) -> io::Result<FolderHandle> {
        let (dir, required_device) = (self.0.dir.open_dir_nofollow(name)?, self.0.required_device);
        if required_device.is_some() && device(&dir)? != required_device {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        Ok(FolderHandle { dir, required_device })
    }

    pub(super) fn modified(&self, name: &OsStr) -> Option<SystemTime> {
        let metadata = self.0.dir.symlink_metadata(name).ok()?;
        metadata.modified().ok().map(cap_std::time::SystemTime::into_std)
    }
}

/// Returns the device of a folder.
#[cfg(unix)]
fn device(dir: &Dir) -> io::Result<Option<u64>> {
    use cap_std::fs::MetadataExt as _;

    dir.dir_metadata().map(|metadata| Some(metadata.dev()))
}

/// On Windows mount points are links, and links are never followed.
#[cfg(not(unix))]
fn device(_: &Dir) -> io::Result<Option<u64>> {
    Ok(None)
}
