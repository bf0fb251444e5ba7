//! The whole of a text that was cut, in a file of its own.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes `text` to a file named after `call` in `folder`, readable by the user alone.
pub(crate) fn keep(folder: &Path, session: &str, call: &str, text: &str) -> io::Result<PathBuf> {
    let folder = folder.join(file_name(session));
    create_private(&folder)?;
    for attempt in 0..100_u32 {
        // The ids of calls may come again in another process; the time does not.
        let suffix = if attempt == 0 { String::new() } else { format!("-{:x}", now()) };
        let path = folder.join(format!("{}{suffix}.txt", file_name(call)));
        match open_new(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many outputs of one call id"))
}

fn now() -> u128 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos())
}

/// An id as a file name: nothing but letters, digits, `-` and `_`, and not empty.
fn file_name(id: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = id.chars().take(64).map(safe).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

#[cfg(unix)]
fn create_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(unix)]
fn open_new(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn open_new(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    // F95: the saved file equals the original bytes.
    #[test]
    fn the_file_is_whole_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let first = keep(folder.path(), "../s", "a/b", "whole\n").unwrap();
        let second = keep(folder.path(), "../s", "a/b", "other\n").unwrap();

        for _ in 0..300 {
            keep(folder.path(), "../s", "a/b", "again\n").unwrap();
        }
        assert_eq!(fs::read_to_string(&first).unwrap(), "whole\n");
        assert_eq!(fs::read_to_string(&second).unwrap(), "other\n");
        assert!(first.starts_with(folder.path()) && first.ends_with("a_b.txt"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
