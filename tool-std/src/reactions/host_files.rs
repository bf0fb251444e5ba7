//! Reads the files of rules, which lie outside of workspaces: in the configuration folder of the user,
//! and in projects that the user trusts.
//!
//! **Invariant:** only regular files are read, and never more than their limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The largest file in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Reads a regular file of text; a link to one is followed.
pub(super) fn read_text_file(path: &Path) -> io::Result<String> {
    // A pipe without a writer would block.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    let length = File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_FILE_BYTES {
        let problem = format!("it is larger than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}
