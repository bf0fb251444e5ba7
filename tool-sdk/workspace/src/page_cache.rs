//! The fast path for reading files: reads that are served from the page cache, without blocking.
//!
//! Reads that may wait for the disk belong on a blocking thread. Switching to that thread takes
//! longer than reading a cached page, so a tool may try this first.

use std::fs::File;
use std::io::{self, Read};

/// Reads a file only as far as it is in the page cache. A read that would wait for the disk fails
/// with `WouldBlock`.
///
/// Uses `preadv2` with `RWF_NOWAIT` on Linux. Elsewhere every read fails with `WouldBlock`.
///
/// # Examples
///
/// ```
/// use std::io::{ErrorKind, Read};
/// use tool_sdk::{PageCacheReader, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let workspace = Workspace::open([folder.path()])?;
/// let file = workspace.resolve("notes.txt")?.open_file()?;
///
/// let mut start = [0; 5];
/// match PageCacheReader::new(&file, 64 * 1024).read(&mut start) {
///     Ok(read) => assert_eq!(&start[..read], b"hello"),
///     Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PageCacheReader<'f> {
    file: &'f File,
    remaining: usize,
}

impl<'f> PageCacheReader<'f> {
    /// Reads from the current position, at most `limit` bytes in total: copying takes time too.
    #[must_use]
    pub fn new(file: &'f File, remaining: usize) -> Self {
        Self { file, remaining }
    }
}

impl Read for PageCacheReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.remaining < into.len() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let read = read_cached(self.file, into)?;
        self.remaining -= read;
        Ok(read)
    }
}

#[cfg(target_os = "linux")]
fn read_cached(file: &File, into: &mut [u8]) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    /// Read at the current position, and advance it.
    const ON: u64 = u64::MAX;

    let mut into = [io::IoSliceMut::new(into)];
    preadv2(file, &mut into, ON, ReadWriteFlags::NOWAIT).map_err(|errno| match errno {
        // The kernel or the file system does not support the flag.
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => io::ErrorKind::WouldBlock.into(),
        errno => errno.into(),
    })
}

#[cfg(not(target_os = "linux"))]
fn read_cached(_: &File, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}
