//! Reads into the spare capacity of a `Vec`, without zeroing the buffer first.

use std::fs::File;
use std::io;

/// Reads once into the spare capacity of `content`, and returns the number of bytes read.
#[cfg(unix)]
pub(super) fn read_to_spare_capacity(file: &File, content: &mut Vec<u8>) -> io::Result<usize> {
    Ok(rustix::io::read(file, rustix::buffer::spare_capacity(content))?)
}

#[cfg(not(unix))]
pub(super) fn read_to_spare_capacity(mut file: &File, content: &mut Vec<u8>) -> io::Result<usize> {
    use std::io::Read as _;

    let filled = content.len();
    content.resize(content.capacity(), 0);
    let read = file.read(&mut content[filled..]);
    content.truncate(filled + *read.as_ref().unwrap_or(&0));
    read
}
