//! Compares a file with its snapshot, before and after it is replaced.
//!
//! **Invariant:** only equal content proves that a file is unchanged; an equal stamp is a hint.

use std::fs::File;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

use super::open::open_entry;
use super::read_to_vec::read_to_spare_capacity;
use super::snapshot::{ChangeStamp, SnapshotMetadata};
use super::xattrs::ExtendedAttributes;

/// The buffer size for comparing content.
const COMPARE_CHUNK: usize = 64 * 1024;

/// The state that a file must have to be replaced or removed.
#[derive(Clone, Copy)]
pub(super) struct ExpectedFile<'e> {
    pub(super) content: &'e [u8],
    /// The metadata of the snapshot, if mode, owner and attributes must match too: a concurrent
    /// `chmod` or `chown` is meant for the replacement as well.
    pub(super) metadata: Option<&'e SnapshotMetadata>,
}

/// Returns whether the file probably matches: its stamp is unchanged, or its content is equal.
pub(super) fn probably_matches(
    dir: &Dir,
    name: &Path,
    expected: ExpectedFile<'_>,
) -> io::Result<bool> {
    let is_untouched = match (expected.metadata, dir.symlink_metadata(name)) {
        (Some(saved), Ok(metadata)) => ChangeStamp::from_metadata(&metadata) == saved.stamp,
        _ => false,
    };
    Ok(is_untouched || matches_exactly(dir, name, expected)?)
}

/// Returns whether the file exists with exactly the expected content, mode, owner and extended
/// attributes.
pub(super) fn matches_exactly(
    dir: &Dir,
    name: &Path,
    expected: ExpectedFile<'_>,
) -> io::Result<bool> {
    let ExpectedFile { content, metadata: saved } = expected;
    if saved.is_some_and(|saved| saved.is_link) {
        let leads_to = dir.read_link_contents(name);
        return Ok(leads_to.is_ok_and(|path| path.as_os_str().as_encoded_bytes() == content));
    }
    let file = match open_entry(dir, name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        // Opening something that is not a regular file may fail; that is a mismatch.
        Err(error) => return if is_regular_file(dir, name) { Err(error) } else { Ok(false) },
    };
    let metadata = Metadata::from_just_metadata(file.metadata()?);
    let is_alike = metadata.is_file()
        && metadata.len() == content.len() as u64
        && saved.is_none_or(|saved| saved.matches_owner_and_mode(&metadata));
    Ok(is_alike && has_same_attributes(&file, saved)? && has_same_content(&file, content)?)
}

fn is_regular_file(dir: &Dir, name: &Path) -> bool {
    dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_file())
}

/// Returns whether the extended attributes of the file are equal to those of the snapshot.
fn has_same_attributes(file: &File, saved: Option<&SnapshotMetadata>) -> io::Result<bool> {
    let Some(saved) = saved else { return Ok(true) };
    Ok(ExtendedAttributes::read_from(file)? == saved.attributes)
}

fn has_same_content(file: &File, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = Vec::with_capacity(COMPARE_CHUNK.min(expected.len() + 1));
    let mut rest = expected;
    loop {
        buffer.clear();
        let read = read_to_spare_capacity(file, &mut buffer)?;
        match rest.strip_prefix(&*buffer) {
            // A short read marks the end of the file.
            Some([]) if read < buffer.capacity() => return Ok(true),
            Some(left) if read > 0 => rest = left,
            _ => return Ok(false),
        }
    }
}
