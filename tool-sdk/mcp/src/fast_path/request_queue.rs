//! Queues requests while the maximum number is in flight. Other messages bypass the queue, because
//! a response or a cancellation may free a slot.
//!
//! **Invariant:** the queue is bounded and first in, first out; no two queued requests have the
//! same id.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use rmcp::model::RequestId;

use super::fast_request::FastRequest;
use super::in_flight::{InFlightRequests, id_json};
use super::json_rpc_batch::JsonRpcBatch;
use crate::message;
use crate::message::MessageError;

/// How many bytes of requests may wait before more are refused.
const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;

/// The requests that wait.
#[derive(Default)]
pub(super) struct RequestQueue {
    lines: VecDeque<(RequestId, QueuedLine)>,
    ids: HashSet<RequestId>,
    bytes: usize,
}

/// A line, and what it came with where that was a batch.
type QueuedLine = (Box<[u8]>, Option<Arc<JsonRpcBatch>>);

impl RequestQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lets a request wait, or forgets the one that is taken back; says whether the line was
    /// that. Nothing is waited for to answer a ping.
    pub(super) fn enqueue(
        &mut self,
        line: &[u8],
        batch: Option<&Arc<JsonRpcBatch>>,
        open: &InFlightRequests,
    ) -> Result<bool, MessageError> {
        let simple = FastRequest::parse_line(line);
        if let Some(FastRequest::Cancelled { id }) = simple {
            return Ok(self.remove_cancelled(id));
        }
        let Some(id) = message::request_id(line) else { return Ok(false) };
        if self.ids.contains(&id) || open.contains(&id_json(&id)) {
            return Err(MessageError::duplicate_id(Some(id)));
        }
        if let Some(FastRequest::Ping { .. }) = simple {
            return Ok(false);
        }
        if self.bytes + line.len() > MAX_QUEUED_BYTES {
            return Err(MessageError::too_many_requests(Some(id)));
        }
        self.bytes += line.len();
        self.ids.insert(id.clone());
        self.lines.push_back((id, (line.into(), batch.cloned())));
        Ok(true)
    }

    /// The one that has waited longest, when there is room for it.
    pub(super) fn pop_ready(&mut self, open: &InFlightRequests) -> Option<QueuedLine> {
        if self.lines.is_empty() || !open.has_capacity() {
            return None;
        }
        let (id, line) = self.lines.pop_front()?;
        self.ids.remove(&id);
        self.bytes -= line.0.len();
        Some(line)
    }

    /// Refuses all of them.
    pub(super) fn refuse_all(
        &mut self,
    ) -> impl Iterator<Item = (MessageError, Option<Arc<JsonRpcBatch>>)> {
        let Self { lines, .. } = std::mem::take(self);
        lines.into_iter().map(|(id, (_, batch))| (MessageError::too_many_requests(Some(id)), batch))
    }

    fn remove_cancelled(&mut self, id: &str) -> bool {
        let Ok(id) = serde_json::from_str::<RequestId>(id) else { return false };
        let known = self.lines.iter().position(|(waits, _)| *waits == id);
        let waited = known.and_then(|at| self.lines.remove(at));
        let Some((_, (line, _))) = waited else { return false };
        self.ids.remove(&id);
        self.bytes -= line.len();
        true
    }
}
