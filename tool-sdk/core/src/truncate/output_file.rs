//! Saves the whole text of a truncated output in a file.
//!
//! Each session has a private folder, named after its id. A folder that another user could have
//! created is refused, and no file is overwritten.
//!
//! **Invariant:** an id from outside becomes exactly one path component.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::private_file::location::{append_to, create_new, create_private_folder};

/// The suffix of every output file. Only files with this suffix are removed after the retention.
pub(super) const OUTPUT_SUFFIX: &str = ".output.txt";

/// The maximum length of a call id in a file name. File systems allow 255 bytes.
const MAX_CALL_ID_BYTES: usize = 128;

/// The maximum number of outputs per call id.
const MAX_COPIES: u32 = 10_000;

/// Returns the folder below `folder` in which the outputs of a session are saved.
///
/// Different sessions have different folders. Add it with `Workspace::with_read_only` to let
/// tools read the saved outputs; create it first with [`prepare_outputs`].
///
/// # Examples
///
/// ```
/// use std::path::Path;
///
/// let outputs = tool_sdk::outputs_folder(Path::new("/var/lib/host"), "team/ada");
/// assert_eq!(outputs, Path::new("/var/lib/host/team%2Fada"));
/// ```
#[must_use]
pub fn outputs_folder(folder: &Path, session_id: &str) -> PathBuf {
    folder.join(encode_file_name(session_id))
}

/// Creates the folder in which the outputs of a session are saved, with mode `0o700`, and returns
/// its absolute path.
///
/// # Errors
///
/// Fails when the folder cannot be created, and when other users may read or replace it.
pub fn prepare_outputs(folder: &Path, session_id: &str) -> io::Result<PathBuf> {
    let folder = std::path::absolute(folder)?;
    let outputs = outputs_folder(&folder, session_id);
    create_private_folder(&outputs)?;
    if is_safe_parent(&fs::metadata(&folder)?)
        && is_private_folder(&fs::symlink_metadata(&outputs)?)
    {
        return Ok(outputs);
    }
    Err(not_private_error(&outputs))
}

/// Writes `text` to a new file named after `call`, with mode `0o600`.
pub(crate) fn save_output(
    folder: &Path,
    session: &str,
    call: &str,
    text: &str,
) -> io::Result<PathBuf> {
    let folder = prepare_outputs(folder, session)?;
    let mut name = encode_file_name(call);
    name.truncate(MAX_CALL_ID_BYTES);
    for copy in 1..=MAX_COPIES {
        let path = folder.join(match copy {
            1 => format!("{name}{OUTPUT_SUFFIX}"),
            _ => format!("{name}-{copy}{OUTPUT_SUFFIX}"),
        });
        match create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                let written = write_output(&file, &folder, text);
                if written.is_err() {
                    // A partial file would pass for the whole output.
                    let _ = fs::remove_file(&path);
                }
                return written.map(|()| path);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many outputs of one call id"))
}

fn write_output(file: &fs::File, folder: &Path, text: &str) -> io::Result<()> {
    if !have_same_owner(&file.metadata()?, &fs::symlink_metadata(folder)?) {
        return Err(not_private_error(folder));
    }
    append_to(file, text.as_bytes())
}

fn not_private_error(folder: &Path) -> io::Error {
    let message = format!("`{}` is accessible to other users", folder.display());
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// Percent-encodes an id as one path component: ASCII letters, digits, `-` and `_` are kept, every
/// other byte becomes `%XX`. Different ids get different names.
fn encode_file_name(id: &str) -> String {
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

/// Returns whether other users cannot replace entries of this folder.
#[cfg(unix)]
pub(super) fn is_safe_parent(folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    const OTHERS_WRITE: u32 = 0o0002;
    const STICKY: u32 = 0o1000;
    folder.mode() & (OTHERS_WRITE | STICKY) != OTHERS_WRITE
}

#[cfg(not(unix))]
pub(super) fn is_safe_parent(_: &fs::Metadata) -> bool {
    true
}

/// Returns whether this is a folder, not a link, without access for other users.
#[cfg(unix)]
pub(super) fn is_private_folder(folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    const GROUP_AND_OTHERS: u32 = 0o0077;
    folder.is_dir() && folder.mode() & GROUP_AND_OTHERS == 0
}

#[cfg(not(unix))]
pub(super) fn is_private_folder(folder: &fs::Metadata) -> bool {
    folder.is_dir()
}

#[cfg(unix)]
fn have_same_owner(file: &fs::Metadata, folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.uid() == folder.uid()
}

#[cfg(not(unix))]
fn have_same_owner(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(folder: &Path, call: &str, text: &str) -> String {
        let path = save_output(folder, "../s", call, text).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(path.parent(), Some(outputs_folder(folder, "../s").as_path()));
        path.file_name().unwrap().to_str().unwrap().to_owned()
    }

    // F95: the saved file equals the original bytes, and no call overwrites another's.
    #[test]
    fn saves_each_output_in_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kept(folder.path(), "a/b", "whole\n"), "a%2Fb.output.txt");
        assert_eq!(kept(folder.path(), "a/b", "other\n"), "a%2Fb-2.output.txt");
        assert_eq!(kept(folder.path(), "a/b", ""), "a%2Fb-3.output.txt");
        assert_eq!(kept(folder.path(), "a_b", "\0\u{feff}ä\r\n"), "a_b.output.txt");
        let long = kept(folder.path(), &"x".repeat(10_000), "long");
        assert_eq!(long.len(), MAX_CALL_ID_BYTES + OUTPUT_SUFFIX.len());
        assert_eq!(kept(folder.path(), "a/b", "again\n"), "a%2Fb-4.output.txt");
    }

    #[test]
    fn rejects_a_session_id_that_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        save_output(folder.path(), &"s".repeat(300), "c", "text").unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn ids_are_percent_encoded() {
        for (id, name) in
            [("", "%"), ("..", "%2E%2E"), ("%", "%25"), ("a\\b:c", "a%5Cb%3Ac"), ("ä", "%C3%A4")]
        {
            assert_eq!(encode_file_name(id), name);
        }
    }

    proptest! {
        #[test]
        fn different_ids_have_different_names(first in "[aA_%/.2F\0]{0,4}", second in "[aA_%/.2F\0]{0,4}") {
            prop_assert_eq!(first == second, encode_file_name(&first) == encode_file_name(&second));
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
            let error = save_output(folder, "s", "c", "secret").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        }

        #[test]
        fn saved_outputs_are_private() {
            let folder = tempfile::tempdir().unwrap();
            let below = folder.path().join("new/outputs");
            let path = save_output(&below, "s", "c", "text").unwrap();
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().unwrap()), 0o700);
            assert_eq!(mode(&below), 0o700);
        }

        #[test]
        fn rejects_a_folder_with_access_for_others() {
            let folder = tempfile::tempdir().unwrap();
            let outputs = prepare_outputs(folder.path(), "s").unwrap();
            set_mode(&outputs, 0o755);
            check_refused(folder.path());
            set_mode(&outputs, 0o700);
            set_mode(folder.path(), 0o777);
            check_refused(folder.path());
            // Sticky, like /tmp: users cannot rename the entries of other users.
            set_mode(folder.path(), 0o1777);
            save_output(folder.path(), "s", "c", "text").unwrap();
        }

        #[test]
        fn links_are_not_followed() {
            let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            symlink(elsewhere.path(), outputs_folder(folder.path(), "s")).unwrap();
            check_refused(folder.path());

            let victim = elsewhere.path().join("victim");
            let outputs = prepare_outputs(folder.path(), "t").unwrap();
            symlink(&victim, outputs.join("c.output.txt")).unwrap();
            let path = save_output(folder.path(), "t", "c", "text").unwrap();
            assert_eq!(path, outputs.join("c-2.output.txt"));
            assert!(!victim.exists());
        }
    }
}
