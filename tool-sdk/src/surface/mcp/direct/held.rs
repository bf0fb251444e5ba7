//! Requests that came while too many were open: they wait, and whatever else the peer says
//! goes past them. An answer to a question, or that a call is not wanted any more, may be
//! what makes room.
//!
//! **Invariant:** what waits is bounded, and goes on in the order in which it came; no two of
//! them have one id.

use std::collections::{HashSet, VecDeque};

use rmcp::model::RequestId;

use super::super::message::{self, Fault};
use super::envelope::Simple;
use super::open::{Open, written};

/// How many bytes of requests may wait before more are refused.
const MOST: usize = 16 * 1024 * 1024;

/// The requests that wait.
#[derive(Default)]
pub(super) struct Held {
    lines: VecDeque<(RequestId, Box<[u8]>)>,
    ids: HashSet<RequestId>,
    bytes: usize,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lets a request wait, or forgets the one that is taken back; says whether the line was
    /// that. Nothing is waited for to answer a ping.
    pub(super) fn take(&mut self, line: &[u8], open: &Open) -> Result<bool, Fault> {
        let simple = Simple::read(line);
        if let Some(Simple::Cancelled { id }) = simple {
            return Ok(self.forget(id));
        }
        let Some(id) = message::request(line) else { return Ok(false) };
        if self.ids.contains(&id) || open.has(&written(&id)) {
            return Err(Fault::taken(Some(id)));
        }
        if let Some(Simple::Ping { .. }) = simple {
            return Ok(false);
        }
        if self.bytes + line.len() > MOST {
            return Err(Fault::crowded(id));
        }
        self.bytes += line.len();
        self.ids.insert(id.clone());
        self.lines.push_back((id, line.into()));
        Ok(true)
    }

    /// The one that has waited longest.
    pub(super) fn next(&mut self) -> Option<Box<[u8]>> {
        let (id, line) = self.lines.pop_front()?;
        self.ids.remove(&id);
        self.bytes -= line.len();
        Some(line)
    }

    /// Refuses all of them.
    pub(super) fn refuse(&mut self) -> impl Iterator<Item = Fault> {
        let Self { lines, .. } = std::mem::take(self);
        lines.into_iter().map(|(id, _)| Fault::crowded(id))
    }

    fn forget(&mut self, id: &str) -> bool {
        let Ok(id) = serde_json::from_str::<RequestId>(id) else { return false };
        let known = self.lines.iter().position(|(waits, _)| *waits == id);
        let Some((_, line)) = known.and_then(|at| self.lines.remove(at)) else { return false };
        self.ids.remove(&id);
        self.bytes -= line.len();
        true
    }
}
