//! Requests that came while too many were open: they wait, and whatever else the peer says
//! goes past them. An answer to a question, or that a call is not wanted any more, may be
//! what makes room.
//!
//! **Invariant:** what waits is bounded, and goes on in the order in which it came.

use std::collections::VecDeque;

use rmcp::model::RequestId;

use super::super::message::{self, Fault};
use super::envelope::Simple;

/// How many bytes of requests may wait before more are refused.
const MOST: usize = 16 * 1024 * 1024;

/// The requests that wait.
#[derive(Default)]
pub(super) struct Held {
    lines: VecDeque<(RequestId, Box<[u8]>)>,
    bytes: usize,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lets a request wait, or forgets the one that is taken back; says whether the line was
    /// that.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<bool, Fault> {
        if let Some(Simple::Cancelled { id }) = Simple::read(line) {
            return Ok(self.forget(id));
        }
        let Some(id) = message::request(line) else { return Ok(false) };
        if self.bytes + line.len() > MOST {
            return Err(Fault::crowded(id));
        }
        self.bytes += line.len();
        self.lines.push_back((id, line.into()));
        Ok(true)
    }

    /// The one that has waited longest.
    pub(super) fn next(&mut self) -> Option<Box<[u8]>> {
        let (_, line) = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    fn forget(&mut self, id: &str) -> bool {
        let Ok(id) = serde_json::from_str::<RequestId>(id) else { return false };
        let known = self.lines.iter().position(|(waits, _)| *waits == id);
        let Some((_, line)) = known.and_then(|at| self.lines.remove(at)) else { return false };
        self.bytes -= line.len();
        true
    }
}
