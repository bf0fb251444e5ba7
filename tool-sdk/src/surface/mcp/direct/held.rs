//! Requests that came while too many were open: they wait, and whatever else the peer says
//! goes past them. An answer to a question, or that a call is not wanted any more, may be
//! what makes room.
//!
//! **Invariant:** what waits is bounded, and goes on in the order in which it came; no two of
//! them have one id.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use rmcp::model::RequestId;

use super::super::message::{self, Fault};
use super::envelope::Simple;
use super::open::{Open, written};
use super::together::Together;

/// How many bytes of requests may wait before more are refused.
const MOST: usize = 16 * 1024 * 1024;

/// The requests that wait.
#[derive(Default)]
pub(super) struct Held {
    lines: VecDeque<(RequestId, Line)>,
    ids: HashSet<RequestId>,
    bytes: usize,
}

/// A line, and what it came with where that was a batch.
type Line = (Box<[u8]>, Option<Arc<Together>>);

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lets a request wait, or forgets the one that is taken back; says whether the line was
    /// that. Nothing is waited for to answer a ping.
    pub(super) fn take(
        &mut self,
        line: &[u8],
        batch: Option<&Arc<Together>>,
        open: &Open,
    ) -> Result<bool, Fault> {
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
            return Err(Fault::crowded(Some(id)));
        }
        self.bytes += line.len();
        self.ids.insert(id.clone());
        self.lines.push_back((id, (line.into(), batch.cloned())));
        Ok(true)
    }

    /// The one that has waited longest, when there is room for it.
    pub(super) fn next(&mut self, open: &Open) -> Option<Line> {
        if self.lines.is_empty() || !open.has_room() {
            return None;
        }
        let (id, line) = self.lines.pop_front()?;
        self.ids.remove(&id);
        self.bytes -= line.0.len();
        Some(line)
    }

    /// Refuses all of them.
    pub(super) fn refuse(&mut self) -> impl Iterator<Item = (Fault, Option<Arc<Together>>)> {
        let Self { lines, .. } = std::mem::take(self);
        lines.into_iter().map(|(id, (_, batch))| (Fault::crowded(Some(id)), batch))
    }

    fn forget(&mut self, id: &str) -> bool {
        let Ok(id) = serde_json::from_str::<RequestId>(id) else { return false };
        let known = self.lines.iter().position(|(waits, _)| *waits == id);
        let waited = known.and_then(|at| self.lines.remove(at));
        let Some((_, (line, _))) = waited else { return false };
        self.ids.remove(&id);
        self.bytes -= line.len();
        true
    }
}
