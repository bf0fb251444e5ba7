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

pub(super) struct Handle(Dir);

/// The folder that holds an entry.
#[derive(Clone)]
pub(super) struct Holder(Arc<Dir>);

impl Handle {
    pub(super) fn of(dir: Dir) -> io::Result<Self> {
        Ok(Self(dir))
    }

    pub(super) fn entries(self) -> io::Result<Vec<FolderEntry>> {
        let holder = Holder(Arc::new(self.0));
        let entry = |entry: io::Result<cap_std::fs::DirEntry>| {
            let entry = entry?;
            let kind = FileKind::of(entry.file_type()?);
            Ok(FolderEntry { name: entry.file_name(), kind, holder: holder.clone() })
        };
        holder.0.entries()?.map(entry).collect()
    }
}

impl Holder {
    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // A pipe is not waited for.
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        Ok(self.0.open_with(name, &options)?.into_std())
    }

    pub(super) fn open_folder(&self, name: &OsStr) -> io::Result<Handle> {
        self.0.open_dir_nofollow(name).map(Handle)
    }

    pub(super) fn modified(&self, name: &OsStr) -> Option<SystemTime> {
        let facts = self.0.symlink_metadata(name).ok()?;
        facts.modified().ok().map(cap_std::time::SystemTime::into_std)
    }
}
