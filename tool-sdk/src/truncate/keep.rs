//! The whole of a text that was cut, in a file of its own.
//!
//! Each session has a folder, named after it and closed to everybody else. A folder that
//! somebody else could have put there is not used, and no file is ever written twice.
//!
//! **Invariant:** a name from outside never becomes more than one part of a path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::store::place::{create_new, create_private, put};

/// How every kept file ends, so that nothing else is ever swept away.
pub(super) const SUFFIX: &str = ".output.txt";

/// The longest part of a call's id in a file's name; file systems take 255 bytes.
const MAX_CALL: usize = 128;

/// How many outputs calls of one id may have.
const MAX_COPIES: u32 = 10_000;

/// The folder below `folder` in which the outputs of a session are kept.
///
/// Different sessions have different folders. Lend it with `Workspace::readable` to let
/// tools open what was cut; [`prepare_outputs`] makes it first.
///
/// # Examples
///
/// ```
/// use std::path::Path;
///
/// let outputs = tool_sdk::outputs_of(Path::new("/var/lib/host"), "team/ada");
/// assert_eq!(outputs, Path::new("/var/lib/host/team%2Fada"));
/// ```
#[must_use]
pub fn outputs_of(folder: &Path, session_id: &str) -> PathBuf {
    folder.join(file_name(session_id))
}

/// Makes the folder in which the outputs of a session are kept, for the user alone, when
/// it is not there yet; gives its absolute path.
///
/// # Errors
///
/// Fails when the folder cannot be made, and when others may look into it or put another
/// one in its place.
pub fn prepare_outputs(folder: &Path, session_id: &str) -> io::Result<PathBuf> {
    let folder = std::path::absolute(folder)?;
    let outputs = outputs_of(&folder, session_id);
    create_private(&outputs)?;
    if is_guarded(&fs::metadata(&folder)?) && is_private(&fs::symlink_metadata(&outputs)?) {
        return Ok(outputs);
    }
    Err(not_ours(&outputs))
}

/// Writes `text` to a new file named after `call`, readable by the user alone.
pub(crate) fn keep(folder: &Path, session: &str, call: &str, text: &str) -> io::Result<PathBuf> {
    let folder = prepare_outputs(folder, session)?;
    let mut name = file_name(call);
    name.truncate(MAX_CALL);
    for copy in 1..=MAX_COPIES {
        let path = folder.join(match copy {
            1 => format!("{name}{SUFFIX}"),
            _ => format!("{name}-{copy}{SUFFIX}"),
        });
        match create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                let written = write(&file, &folder, text);
                if written.is_err() {
                    // A part would pass for the whole.
                    let _ = fs::remove_file(&path);
                }
                return written.map(|()| path);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many outputs of one call id"))
}

fn write(file: &fs::File, folder: &Path, text: &str) -> io::Result<()> {
    if !have_one_owner(&file.metadata()?, &fs::symlink_metadata(folder)?) {
        return Err(not_ours(folder));
    }
    put(file, text.as_bytes())
}

fn not_ours(folder: &Path) -> io::Error {
    let message = format!("`{}` is not the user's alone", folder.display());
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// An id as one part of a path: letters, digits, `-` and `_` stay, and every other byte is
/// written as `%` and its number. Different ids have different names.
fn file_name(id: &str) -> String {
    if id.is_empty() {
        return "%".to_owned();
    }
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

/// Whether others cannot exchange what is in this folder.
#[cfg(unix)]
pub(super) fn is_guarded(folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    const OTHERS_WRITE: u32 = 0o0002;
    const STICKY: u32 = 0o1000;
    folder.mode() & (OTHERS_WRITE | STICKY) != OTHERS_WRITE
}

#[cfg(not(unix))]
pub(super) fn is_guarded(_: &fs::Metadata) -> bool {
    true
}

/// Whether it is a folder, no link to one, that nobody else may use.
#[cfg(unix)]
pub(super) fn is_private(folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    const ANYBODY_ELSE: u32 = 0o0077;
    folder.is_dir() && folder.mode() & ANYBODY_ELSE == 0
}

#[cfg(not(unix))]
pub(super) fn is_private(folder: &fs::Metadata) -> bool {
    folder.is_dir()
}

#[cfg(unix)]
fn have_one_owner(file: &fs::Metadata, folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.uid() == folder.uid()
}

#[cfg(not(unix))]
fn have_one_owner(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(folder: &Path, call: &str, text: &str) -> String {
        let path = keep(folder, "../s", call, text).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(path.parent(), Some(outputs_of(folder, "../s").as_path()));
        path.file_name().unwrap().to_str().unwrap().to_owned()
    }

    // F95: the saved file equals the original bytes, and no call writes over another's.
    #[test]
    fn each_output_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kept(folder.path(), "a/b", "whole\n"), "a%2Fb.output.txt");
        assert_eq!(kept(folder.path(), "a/b", "other\n"), "a%2Fb-2.output.txt");
        assert_eq!(kept(folder.path(), "a/b", ""), "a%2Fb-3.output.txt");
        assert_eq!(kept(folder.path(), "a_b", "\0\u{feff}ä\r\n"), "a_b.output.txt");
        let long = kept(folder.path(), &"x".repeat(10_000), "long");
        assert_eq!(long.len(), MAX_CALL + SUFFIX.len());
        assert_eq!(kept(folder.path(), "a/b", "again\n"), "a%2Fb-4.output.txt");
    }

    #[test]
    fn a_session_whose_id_is_no_file_name_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        keep(folder.path(), &"s".repeat(300), "c", "text").unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_are_one_part_of_a_path() {
        for (id, name) in
            [("", "%"), ("..", "%2E%2E"), ("%", "%25"), ("a\\b:c", "a%5Cb%3Ac"), ("ä", "%C3%A4")]
        {
            assert_eq!(file_name(id), name);
        }
    }

    proptest! {
        #[test]
        fn different_ids_have_different_names(first in "[aA_%/.2F\0]{0,4}", second in "[aA_%/.2F\0]{0,4}") {
            prop_assert_eq!(first == second, file_name(&first) == file_name(&second));
        }
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        use super::*;

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().permissions().mode() & 0o7777
        }

        fn set_mode(path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }

        #[track_caller]
        fn check_refused(folder: &Path) {
            let error = keep(folder, "s", "c", "secret").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        }

        #[test]
        fn what_is_kept_is_the_users_alone() {
            let folder = tempfile::tempdir().unwrap();
            let below = folder.path().join("new/outputs");
            let path = keep(&below, "s", "c", "text").unwrap();
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().unwrap()), 0o700);
            assert_eq!(mode(&below), 0o700);
        }

        #[test]
        fn a_folder_that_others_may_use_is_refused() {
            let folder = tempfile::tempdir().unwrap();
            let outputs = prepare_outputs(folder.path(), "s").unwrap();
            set_mode(&outputs, 0o755);
            check_refused(folder.path());
            set_mode(&outputs, 0o700);
            set_mode(folder.path(), 0o777);
            check_refused(folder.path());
            // Such as /tmp, where nobody can move what is another's.
            set_mode(folder.path(), 0o1777);
            keep(folder.path(), "s", "c", "text").unwrap();
        }

        #[test]
        fn links_are_not_followed() {
            let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            symlink(elsewhere.path(), outputs_of(folder.path(), "s")).unwrap();
            check_refused(folder.path());

            let victim = elsewhere.path().join("victim");
            let outputs = prepare_outputs(folder.path(), "t").unwrap();
            symlink(&victim, outputs.join("c.output.txt")).unwrap();
            let path = keep(folder.path(), "t", "c", "text").unwrap();
            assert_eq!(path, outputs.join("c-2.output.txt"));
            assert!(!victim.exists());
        }
    }
}
