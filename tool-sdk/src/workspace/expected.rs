//! Whether a file still is what was read: the proof before and after it is replaced.
//!
//! **Invariant:** a file is the same only if it holds the same; that nobody seems to have
//! touched it is a hint.

use std::fs::File;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

use super::attributes::Attributes;
use super::fill::fill;
use super::named::open;
use super::snapshot::{Facts, Stamp};

/// How much of a file is compared at once.
const CHUNK: usize = 64 * 1024;

/// What a file must hold to be replaced or removed.
#[derive(Clone, Copy)]
pub(super) struct Expected<'e> {
    pub(super) content: &'e [u8],
    /// What the system said of it when it held that, where somebody asked. Who changed its
    /// mode or owner meant the successor, too.
    pub(super) facts: Option<&'e Facts>,
}

/// Whether the file is probably what is expected: nobody touched it, or it holds the same.
pub(super) fn seems(dir: &Dir, name: &Path, expected: Expected<'_>) -> io::Result<bool> {
    let is_untouched = match (expected.facts, dir.symlink_metadata(name)) {
        (Some(facts), Ok(metadata)) => Stamp::of(&metadata) == facts.stamp,
        _ => false,
    };
    Ok(is_untouched || holds(dir, name, expected)?)
}

/// Whether there is a file that holds what is expected and nothing else, with its mode, owner
/// and attributes.
pub(super) fn holds(dir: &Dir, name: &Path, expected: Expected<'_>) -> io::Result<bool> {
    let Expected { content, facts } = expected;
    if facts.is_some_and(|facts| facts.is_link) {
        let leads_to = dir.read_link_contents(name);
        return Ok(leads_to.is_ok_and(|path| path.as_os_str().as_encoded_bytes() == content));
    }
    let file = match open(dir, name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        // What is no file may not let itself be opened.
        Err(error) => return if is_file(dir, name) { Err(error) } else { Ok(false) },
    };
    let metadata = Metadata::from_just_metadata(file.metadata()?);
    let is_alike = metadata.is_file()
        && metadata.len() == content.len() as u64
        && facts.is_none_or(|facts| facts.fit(&metadata));
    Ok(is_alike && fits(&file, facts)? && same(&file, content)?)
}

fn is_file(dir: &Dir, name: &Path) -> bool {
    dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_file())
}

/// Whether a file has what else its successor gets.
fn fits(file: &File, facts: Option<&Facts>) -> io::Result<bool> {
    let Some(facts) = facts else { return Ok(true) };
    Ok(Attributes::of(file)? == facts.attributes)
}

fn same(file: &File, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = Vec::with_capacity(CHUNK.min(expected.len() + 1));
    let mut rest = expected;
    loop {
        buffer.clear();
        let read = fill(file, &mut buffer)?;
        match rest.strip_prefix(&*buffer) {
            // A file gives less than was asked for at its end.
            Some([]) if read < buffer.capacity() => return Ok(true),
            Some(left) if read > 0 => rest = left,
            _ => return Ok(false),
        }
    }
}
