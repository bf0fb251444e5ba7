//! Reads a source in large blocks, so that few system calls are needed.
//!
//! **Invariant:** nothing here interprets the bytes.

use std::io::{self, Read};

use crate::text::line_index::Checkpoint;

/// The size of the first block: enough for a page, so that the first page costs one read.
const FIRST_BLOCK: usize = 56 * 1024;

/// The size of further blocks.
pub(super) const BLOCK: usize = 256 * 1024;

/// The error of a page that cannot be read.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The source cannot be read.
    Read(io::Error),
    /// The call was cancelled or timed out.
    Cancelled,
    /// The source ends before the page starts.
    PastEnd {
        /// The total number of lines.
        lines: u64,
    },
}

/// A buffered reader that counts its position in bytes and lines.
pub(crate) struct BlockReader<R, S> {
    source: R,
    is_cancelled: S,
    block: Vec<u8>,
    consumed: usize,
    filled: usize,
    /// The position in the source after the buffer.
    pub(super) position: u64,
    /// The number of lines that end before the first byte that is read.
    pub(super) lines: u64,
}

impl<R: Read, S: Fn() -> bool> BlockReader<R, S> {
    /// Creates a reader without reading. `stopped` is checked before each read.
    pub(crate) fn new(source: R, stopped: S) -> Self {
        Self::from_checkpoint(source, stopped, Checkpoint::default())
    }

    /// Creates a reader for a source that is positioned at `mark`.
    pub(crate) fn from_checkpoint(
        source: R,
        is_cancelled: S,
        Checkpoint { offset, lines }: Checkpoint,
    ) -> Self {
        let block = Vec::new();
        Self { source, is_cancelled, block, consumed: 0, filled: 0, position: offset, lines }
    }

    /// Returns the bytes that are buffered and not consumed.
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.block[self.consumed..self.filled]
    }

    /// Reads a block, unless bytes are buffered. Returns `false` at the end of the source.
    pub(crate) fn fill_buffer(&mut self) -> Result<bool, PageError> {
        if self.consumed < self.filled {
            return Ok(true);
        }
        if (self.is_cancelled)() {
            return Err(PageError::Cancelled);
        }
        let size = if self.position == 0 { FIRST_BLOCK } else { BLOCK };
        if self.block.len() < size {
            self.block = vec![0; size];
        }
        self.consumed = 0;
        self.filled = loop {
            match self.source.read(&mut self.block) {
                Ok(filled) => break filled,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PageError::Read(error)),
            }
        };
        self.position += self.filled as u64;
        Ok(self.filled > 0)
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    pub(super) fn consume_all(&mut self) {
        self.consumed = self.filled;
    }
}
