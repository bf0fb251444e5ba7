//! The patch engine of `apply_patch`: parses patches and computes the new texts.
//!
//! [`parse`] parses a patch and reports its mistakes, [`ParsedPatch::verify`] rejects contradictory
//! sections, [`parse_hunk`] parses one section with its content, and [`apply_chunks`] computes the
//! new text of a file.
//!
//! **Invariant:** nothing here reads or writes a file. A file is its text.

mod apply;
mod line_matcher;
mod parser;
mod shell_wrapper;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};

pub(crate) use self::apply::{ApplyError, PatchedText, apply_chunks};
pub(crate) use self::line_matcher::{MatchBudget, MatchPass};
pub(crate) use self::parser::ParseError;

/// A parsed patch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedPatch<'p> {
    /// The id of the environment whose files are meant, where a host has several.
    pub(crate) environment: Option<&'p str>,
    /// The sections, in order.
    pub(crate) sections: Vec<PatchSection<'p>>,
}

/// A section without its content, which is parsed when the section is applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatchSection<'p> {
    /// The path of the file.
    pub(crate) path: &'p str,
    /// The new path, when the file is moved.
    pub(crate) move_to: Option<&'p str>,
    /// Whether the section removes the file from its path.
    pub(crate) is_removed: bool,
    /// The text of the section, for [`parse_hunk`].
    pub(crate) source: &'p str,
}

/// The change of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PatchHunk<'p> {
    /// Creates or overwrites the file.
    Add {
        /// The path of the file.
        path: &'p str,
        /// The whole text; every line has a line ending.
        content: String,
    },
    /// Removes the file.
    Delete {
        /// The path of the file.
        path: &'p str,
    },
    /// Edits the file.
    Update {
        /// The path of the file.
        path: &'p str,
        /// The new path, when the file is moved.
        move_to: Option<&'p str>,
        /// The chunks, from top to bottom.
        chunks: Vec<UpdateChunk<'p>>,
    },
}

/// The change of one place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpdateChunk<'p> {
    /// Context lines above the place, in order, not necessarily adjacent.
    pub(crate) contexts: Vec<&'p str>,
    /// The old and the new lines.
    pub(crate) lines: Vec<ChunkLine<'p>>,
    /// Whether the chunk is at the end of the file.
    pub(crate) end_of_file: bool,
}

/// One line of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkLine<'p> {
    /// A context line.
    Keep(&'p str),
    /// A removed line.
    Remove(&'p str),
    /// An added line.
    Add(&'p str),
}

/// The error of a patch that contradicts itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum VerifyError {
    /// The patch has no sections.
    EmptyPatch,
    /// Two sections change one file.
    DuplicatePath(String),
}

/// Parses the [source](PatchSection::source) of a section.
pub(crate) fn parse_hunk(source: &str) -> Result<PatchHunk<'_>, ParseError> {
    parser::parse_hunk(source)
}

/// Parses a patch, also one that is wrapped in a shell command.
pub(crate) fn parse(text: &str) -> Result<ParsedPatch<'_>, ParseError> {
    parser::parse(shell_wrapper::strip_shell_wrapper(text))
}

impl<'p> ParsedPatch<'p> {
    /// Fails for an empty patch, and for two sections of one file, whose order would decide the
    /// result.
    ///
    /// Paths are compared as they are written. The caller detects two paths of one file that only
    /// the file system knows.
    pub(crate) fn verify(&self) -> Result<(), VerifyError> {
        if self.sections.is_empty() {
            return Err(VerifyError::EmptyPatch);
        }
        let mut seen = HashSet::new();
        for path in self.sections.iter().flat_map(PatchSection::paths) {
            if !seen.insert(normalize_path(path)) {
                return Err(VerifyError::DuplicatePath(path.to_owned()));
            }
        }
        Ok(())
    }
}

impl<'p> PatchHunk<'p> {
    /// Returns the new path, when the file is moved.
    pub(crate) fn move_to(&self) -> Option<&'p str> {
        match *self {
            PatchHunk::Update { move_to, .. } => move_to,
            _ => None,
        }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &'p str {
        let (PatchHunk::Add { path, .. }
        | PatchHunk::Delete { path }
        | PatchHunk::Update { path, .. }) = *self;
        path
    }
}

impl<'p> PatchSection<'p> {
    /// Returns the paths of the section.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'p str> + use<'p> {
        [Some(self.path), self.move_to].into_iter().flatten()
    }
}

impl<'p> ChunkLine<'p> {
    /// Returns the line in the old text.
    pub(crate) fn old_text(self) -> Option<&'p str> {
        match self {
            ChunkLine::Keep(text) | ChunkLine::Remove(text) => Some(text),
            ChunkLine::Add(_) => None,
        }
    }

    /// Returns the line in the new text.
    pub(crate) fn new_text(self) -> Option<&'p str> {
        match self {
            ChunkLine::Keep(text) | ChunkLine::Add(text) => Some(text),
            ChunkLine::Remove(_) => None,
        }
    }
}

/// Removes `.` and `..`, so that two spellings of one path are equal.
fn normalize_path(path: &str) -> PathBuf {
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
            VerifyError::EmptyPatch => {
                f.write_str("patch rejected: empty patch. No files were modified.")
            }
            VerifyError::DuplicatePath(path) => write!(
                f,
                "`{path}` appears in two operations of the patch; put all its changes into one"
            ),
        }
    }
}

impl std::error::Error for VerifyError {}
