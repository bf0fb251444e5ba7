//! Reading into memory that nothing was written to before: a file that is read whole is not
//! worth being zeros first.

use std::fs::File;
use std::io;

/// Reads once, as much as there is room for behind `content`; says how much that was.
#[cfg(unix)]
pub(super) fn fill(file: &File, content: &mut Vec<u8>) -> io::Result<usize> {
    Ok(rustix::io::read(file, rustix::buffer::spare_capacity(content))?)
}

#[cfg(not(unix))]
pub(super) fn fill(mut file: &File, content: &mut Vec<u8>) -> io::Result<usize> {
    use std::io::Read as _;

    let filled = content.len();
    content.resize(content.capacity(), 0);
    let read = file.read(&mut content[filled..]);
    content.truncate(filled + *read.as_ref().unwrap_or(&0));
    read
}
