//! Reading of what the system holds in memory anyway.
//!
//! Work that may wait for a disk belongs on another thread; to go there and back takes longer
//! than a page of a file that is in memory. A tool may try this first.

use std::fs::File;
use std::io::{self, Read};

/// A file of which only that is read which is in memory; anything else is an error of the
/// kind `WouldBlock`.
///
/// Where the system cannot tell, nothing is in memory.
///
/// # Examples
///
/// ```
/// use std::io::{ErrorKind, Read};
/// use tool_sdk::{InMemory, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let workspace = Workspace::open([folder.path()])?;
/// let file = workspace.resolve("notes.txt")?.open_file()?;
///
/// let mut start = [0; 5];
/// match InMemory::new(&file, 64 * 1024).read(&mut start) {
///     Ok(read) => assert_eq!(&start[..read], b"hello"),
///     Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InMemory<'f> {
    file: &'f File,
    room: usize,
}

impl<'f> InMemory<'f> {
    /// The file from where it stands on, and not more than `room` bytes of it: copying takes
    /// time, too.
    #[must_use]
    pub fn new(file: &'f File, room: usize) -> Self {
        Self { file, room }
    }
}

impl Read for InMemory<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.room < into.len() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let read = without_waiting(self.file, into)?;
        self.room -= read;
        Ok(read)
    }
}

#[cfg(target_os = "linux")]
fn without_waiting(file: &File, into: &mut [u8]) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    /// Reads on from where the file stands.
    const ON: u64 = u64::MAX;

    let mut into = [io::IoSliceMut::new(into)];
    preadv2(file, &mut into, ON, ReadWriteFlags::NOWAIT).map_err(|errno| match errno {
        // This system, or this file system, does not know the flag.
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => io::ErrorKind::WouldBlock.into(),
        errno => errno.into(),
    })
}

#[cfg(not(target_os = "linux"))]
fn without_waiting(_: &File, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}
