//! Handles where nothing better is known: an entry is opened by its name in the folder, and
//! `cap-std` sees to it that this does not lead out.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};

use super::super::FileKind;
use super::FolderEntry;

pub(super) struct Handle {
    dir: Dir,
    /// The device that all below must be on, where it must be on one.
    only: Option<u64>,
}

/// The folder that holds an entry.
#[derive(Clone)]
pub(super) struct Holder(Arc<Handle>);

impl Handle {
    pub(super) fn of(dir: Dir, one_device: bool) -> io::Result<Self> {
        let only = if one_device { device(&dir)? } else { None };
        Ok(Self { dir, only })
    }

    pub(super) fn entries(self) -> io::Result<Vec<FolderEntry>> {
        let holder = Holder(Arc::new(self));
        let entry = |entry: io::Result<cap_std::fs::DirEntry>| {
            let entry = entry?;
            let kind = FileKind::of(entry.file_type()?);
            Ok(FolderEntry { name: entry.file_name(), kind, holder: holder.clone() })
        };
        holder.0.dir.entries()?.map(entry).collect()
    }
}

impl Holder {
    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // A pipe is not waited for.
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        Ok(self.0.dir.open_with(name, &options)?.into_std())
    }

    pub(super) fn open_folder(&self, name: &OsStr) -> io::Result<Handle> {
        let (dir, only) = (self.0.dir.open_dir_nofollow(name)?, self.0.only);
        if only.is_some() && device(&dir)? != only {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        Ok(Handle { dir, only })
    }

    pub(super) fn modified(&self, name: &OsStr) -> Option<SystemTime> {
        let facts = self.0.dir.symlink_metadata(name).ok()?;
        facts.modified().ok().map(cap_std::time::SystemTime::into_std)
    }
}

/// The device that a folder is on.
#[cfg(unix)]
fn device(dir: &Dir) -> io::Result<Option<u64>> {
    use cap_std::fs::MetadataExt as _;

    dir.dir_metadata().map(|facts| Some(facts.dev()))
}

/// What is mounted in a folder is a link there, and no link is followed.
#[cfg(not(unix))]
fn device(_: &Dir) -> io::Result<Option<u64>> {
    Ok(None)
}
