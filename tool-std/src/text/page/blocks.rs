//! Reads a source in large blocks, so that few system calls are needed.
//!
//! **Invariant:** nothing here interprets the bytes.

use std::io::{self, Read};

use crate::text::index::Mark;

/// The size of the first block: enough for a page, so that the first page costs one read.
const FIRST_BLOCK: usize = 56 * 1024;

/// The size of further blocks.
pub(super) const BLOCK: usize = 256 * 1024;

/// The error of a page that cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The source cannot be read.
    Read(io::Error),
    /// The call was cancelled or timed out.
    Stopped,
    /// The source ends before the page starts.
    PastEnd {
        /// The total number of lines.
        lines: u64,
    },
}

/// A buffered reader that counts its position in bytes and lines.
pub(crate) struct Blocks<R, S> {
    source: R,
    stopped: S,
    block: Vec<u8>,
    used: usize,
    filled: usize,
    /// The position in the source after the buffer.
    pub(super) position: u64,
    /// The number of lines that end before the first byte that is read.
    pub(super) lines: u64,
}

impl<R: Read, S: Fn() -> bool> Blocks<R, S> {
    /// Creates a reader without reading. `stopped` is checked before each read.
    pub(crate) fn new(source: R, stopped: S) -> Self {
        Self::at(source, stopped, Mark::default())
    }

    /// Creates a reader for a source that is positioned at `mark`.
    pub(crate) fn at(source: R, stopped: S, Mark { offset, lines }: Mark) -> Self {
        let block = Vec::new();
        Self { source, stopped, block, used: 0, filled: 0, position: offset, lines }
    }

    /// Returns the bytes that are buffered and not consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.block[self.used..self.filled]
    }

    /// Reads a block, unless bytes are buffered. Returns `false` at the end of the source.
    pub(crate) fn more(&mut self) -> Result<bool, Fault> {
        if self.used < self.filled {
            return Ok(true);
        }
        if (self.stopped)() {
            return Err(Fault::Stopped);
        }
        let size = if self.position == 0 { FIRST_BLOCK } else { BLOCK };
        if self.block.len() < size {
            self.block = vec![0; size];
        }
        self.used = 0;
        self.filled = loop {
            match self.source.read(&mut self.block) {
                Ok(filled) => break filled,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Read(error)),
            }
        };
        self.position += self.filled as u64;
        Ok(self.filled > 0)
    }

    pub(super) fn use_up(&mut self, bytes: usize) {
        self.used += bytes;
    }

    pub(super) fn use_all(&mut self) {
        self.used = self.filled;
    }
}
