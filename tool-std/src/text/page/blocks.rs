//! A source in blocks of a size at which the system is asked rarely.
//!
//! **Invariant:** nothing here looks at a byte.

use std::io::{self, Read};

use crate::text::index::Mark;

/// The first block: enough for a whole page, so that the start of a file costs one read.
const FIRST_BLOCK: usize = 56 * 1024;

/// Further blocks, at the speed of memory.
pub(super) const BLOCK: usize = 256 * 1024;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The source cannot be read.
    Read(io::Error),
    /// Nobody waits for the page any more.
    Stopped,
    /// The source ends before the page starts.
    PastEnd {
        /// Lines in all.
        lines: u64,
    },
}

/// A source in blocks.
pub(crate) struct Blocks<R, S> {
    source: R,
    stopped: S,
    block: Vec<u8>,
    used: usize,
    filled: usize,
    /// Behind what was read so far.
    pub(super) position: u64,
    /// Lines that end before the first byte that is read.
    pub(super) lines: u64,
}

impl<R: Read, S: Fn() -> bool> Blocks<R, S> {
    /// Nothing is read yet. `stopped` is asked before each read.
    pub(crate) fn new(source: R, stopped: S) -> Self {
        Self::at(source, stopped, Mark::default())
    }

    /// A source that stands at `mark`.
    pub(crate) fn at(source: R, stopped: S, Mark { offset, lines }: Mark) -> Self {
        let block = Vec::new();
        Self { source, stopped, block, used: 0, filled: 0, position: offset, lines }
    }

    /// What was read and not used.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.block[self.used..self.filled]
    }

    /// Makes sure that there is a rest; says no at the end of the source.
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
