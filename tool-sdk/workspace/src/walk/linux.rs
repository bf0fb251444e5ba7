//! Folder handles on Linux: a folder is read with four system calls, independent of its size
//! up to one buffer.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, StatxFlags, openat, statat, statx};

use super::FolderEntry;
use crate::FileKind;

/// The buffer size for one `getdents` call.
const ENTRY_BUFFER_BYTES: usize = 32 * 1024;

pub(super) struct FolderHandle {
    fd: OwnedFd,
    /// The device on which all entries must be, if the walk stays on one file system.
    required_device: Option<u64>,
}

/// A shared handle of the parent folder of an entry.
#[derive(Clone)]
pub(super) struct ParentFolder(Arc<FolderHandle>);

impl FolderHandle {
    pub(super) fn from_dir(dir: Dir, one_device: bool) -> io::Result<Self> {
        // cap-std may have opened the handle with `O_PATH`, so it is reopened for reading.
        let fd = openat(dir, ".", FOLDER_FLAGS, Mode::empty())?;
        if !one_device {
            return Ok(Self { fd, required_device: None });
        }
        let (fd, device) = with_device(fd)?;
        Ok(Self { fd, required_device: Some(device) })
    }

    pub(super) fn entries(self) -> io::Result<Vec<FolderEntry>> {
        let folder = Arc::new(self);
        let mut room = Vec::with_capacity(ENTRY_BUFFER_BYTES);
        let mut entries = Vec::new();
        let mut found = RawDir::new(&folder.fd, room.spare_capacity_mut());
        while let Some(entry) = found.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type in `getdents`.
                FileType::Unknown => {
                    let stat = statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                known => known,
            };
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            let holder = ParentFolder(Arc::clone(&folder));
            entries.push(FolderEntry { name, kind: file_kind(kind), parent: holder });
        }
        Ok(entries)
    }
}

/// Open a folder for reading, without following a link.
const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Open a file for reading, without following a link or blocking on a pipe.
const FILE_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl ParentFolder {
    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        Ok(openat(&self.0.fd, name, FILE_FLAGS, Mode::empty())?.into())
    }

    pub(super) fn open_folder(&self, name: &OsStr) -> io::Result<FolderHandle> {
        let fd = openat(&self.0.fd, name, FOLDER_FLAGS, Mode::empty())?;
        let Some(required_device) = self.0.required_device else {
            return Ok(FolderHandle { fd, required_device: None });
        };
        let (fd, device) = with_device(fd)?;
        if device != required_device {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        Ok(FolderHandle { fd, required_device: Some(required_device) })
    }

    pub(super) fn modified(&self, name: &OsStr) -> Option<SystemTime> {
        let stat = statx(&self.0.fd, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MTIME).ok()?;
        let since = Duration::new(stat.stx_mtime.tv_sec.try_into().ok()?, stat.stx_mtime.tv_nsec);
        SystemTime::UNIX_EPOCH.checked_add(since)
    }
}

/// Returns the handle together with its device number.
fn with_device(fd: OwnedFd) -> io::Result<(OwnedFd, u64)> {
    let file = File::from(fd);
    let device = file.metadata()?.dev();
    Ok((file.into(), device))
}

fn file_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}
