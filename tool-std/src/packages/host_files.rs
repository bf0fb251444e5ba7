//! Reads files outside of workspaces: skills and plugins lie in the home folder of the user, in the
//! state folder of the program, and in sources that the user approved. Everything else of `packages`,
//! `skills` and `plugins` reads through this module.
//!
//! **Invariant:** only regular files are read, and never more than the caller expects.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Returns the entries of a folder.
pub(crate) fn list_folder(path: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(path)?.collect()
}

/// Opens a regular file that is not a link.
pub(crate) fn open_regular_file(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// Reads a regular file with at most `most` bytes; a link to one is followed.
pub(crate) fn read_bounded_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // A pipe without a writer would block.
    if !fs::metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads a regular file of text with at most `most` bytes.
pub(crate) fn read_text_file(path: &Path, most: u64) -> io::Result<String> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let text = String::from_utf8(read_bounded_file(path, most)?);
    let text = text.map_err(|_| invalid("it is not UTF-8"))?;
    if text.contains('\0') { Err(invalid("it is not text")) } else { Ok(text) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}
