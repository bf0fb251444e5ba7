//! Patches in the form that models write: what they mean, and the text they lead to.
//!
//! [`parse`] reads which files a patch is about and finds its mistakes, [`Patch::verify`]
//! refuses one that contradicts itself, [`hunk`] reads what becomes of one file, and
//! [`update`] makes its new text.
//!
//! **Invariant:** nothing here reads or writes a file. A file is its text.

mod apply;
mod exact;
mod grammar;
mod seek;
#[cfg(test)]
mod tests;
mod wrapper;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};

pub(crate) use self::apply::{ApplyError, Updated, update};
pub(crate) use self::grammar::ParseError;
pub(crate) use self::seek::{Effort, Pass};

/// A patch of several files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Patch<'p> {
    /// The machine whose files are meant, where a host has several.
    pub(crate) environment: Option<&'p str>,
    /// What is done, in order.
    pub(crate) sections: Vec<Section<'p>>,
}

/// That something is done to one file. What, is read later: sections can be read on several
/// threads, and a patch as a whole cannot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Section<'p> {
    /// The file.
    pub(crate) path: &'p str,
    /// Where the file goes, when it gets another path.
    pub(crate) moves_to: Option<&'p str>,
    /// Whether nothing is left under the path.
    pub(crate) goes: bool,
    /// The section itself, for [`hunk`].
    pub(crate) source: &'p str,
}

/// What is done to one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hunk<'p> {
    /// It is created, or written anew.
    Add {
        /// The file.
        path: &'p str,
        /// Its whole text; every line has its end.
        content: String,
    },
    /// It is removed.
    Delete {
        /// The file.
        path: &'p str,
    },
    /// It is changed.
    Update {
        /// The file.
        path: &'p str,
        /// Its new path, when it gets another one.
        move_to: Option<&'p str>,
        /// The places, from top to bottom.
        chunks: Vec<Chunk<'p>>,
    },
}

/// One place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'p> {
    /// Lines somewhere above the place, each somewhere below the one before it.
    pub(crate) contexts: Vec<&'p str>,
    /// What the place says, and what it is to say.
    pub(crate) lines: Vec<ChunkLine<'p>>,
    /// Whether the place is the end of the file.
    pub(crate) end_of_file: bool,
}

/// One line of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkLine<'p> {
    /// It is there and stays.
    Keep(&'p str),
    /// It is there and goes.
    Remove(&'p str),
    /// It comes.
    Add(&'p str),
}

/// Why a patch that can be read is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum VerifyError {
    /// It does nothing.
    Empty,
    /// It does two things to one file.
    Twice(String),
}

/// Reads the [source](Section::source) of a section.
pub(crate) fn hunk(source: &str) -> Result<Hunk<'_>, ParseError> {
    grammar::hunk(source)
}

/// Reads a patch, also one that is wrapped the way a shell would take it.
pub(crate) fn parse(text: &str) -> Result<Patch<'_>, ParseError> {
    grammar::parse(wrapper::unwrap(text))
}

impl<'p> Patch<'p> {
    /// Whether the patch does something, and no two things to one file: their order would
    /// decide what becomes of it.
    ///
    /// Paths are compared as they are written. Two names of one file that only the file
    /// system knows are for the caller to find.
    pub(crate) fn verify(&self) -> Result<(), VerifyError> {
        if self.sections.is_empty() {
            return Err(VerifyError::Empty);
        }
        let mut seen = HashSet::new();
        for path in self.sections.iter().flat_map(Section::paths) {
            if !seen.insert(plain_path(path)) {
                return Err(VerifyError::Twice(path.to_owned()));
            }
        }
        Ok(())
    }
}

impl<'p> Hunk<'p> {
    /// Where the file goes, when it gets another path.
    pub(crate) fn moves_to(&self) -> Option<&'p str> {
        match *self {
            Hunk::Update { move_to, .. } => move_to,
            _ => None,
        }
    }

    /// The file.
    pub(crate) fn path(&self) -> &'p str {
        let (Hunk::Add { path, .. } | Hunk::Delete { path } | Hunk::Update { path, .. }) = *self;
        path
    }
}

impl<'p> Section<'p> {
    /// The files that it touches.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'p str> + use<'p> {
        [Some(self.path), self.moves_to].into_iter().flatten()
    }
}

impl<'p> ChunkLine<'p> {
    /// What the file says now.
    pub(crate) fn before(self) -> Option<&'p str> {
        match self {
            ChunkLine::Keep(text) | ChunkLine::Remove(text) => Some(text),
            ChunkLine::Add(_) => None,
        }
    }

    /// What the file is to say.
    pub(crate) fn after(self) -> Option<&'p str> {
        match self {
            ChunkLine::Keep(text) | ChunkLine::Add(text) => Some(text),
            ChunkLine::Remove(_) => None,
        }
    }
}

/// A path without `.` and `..`, so that two ways to write one path are equal.
fn plain_path(path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::Empty => {
                f.write_str("patch rejected: empty patch. No files were modified.")
            }
            VerifyError::Twice(path) => write!(
                f,
                "`{path}` appears in two operations of the patch; put all its changes into one"
            ),
        }
    }
}

impl std::error::Error for VerifyError {}
