//! JSON-RPC batches over two streams: collects the responses and sends them in one line.
//!
//! **Invariant:** the responses of a batch are sent when the last pending request has dropped its
//! reference, so that a cancelled or endless call does not hold them back forever.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::line_writer::LineWriter;
use super::response_writer;
use crate::json_rpc_batch;
use crate::message;
use crate::message::MessageError;

/// The responses of one batch so far. Each pending request holds a reference.
pub(super) struct JsonRpcBatch {
    out: Arc<LineWriter>,
    answers: Mutex<Vec<u8>>,
}

/// Says an answer: to the peer, or to the others of its batch.
pub(super) fn write_response(
    out: &LineWriter,
    batch: Option<&JsonRpcBatch>,
    answer: impl FnOnce(&mut Vec<u8>),
) {
    match batch {
        Some(batch) => batch.push_response(answer),
        None => out.enqueue(answer),
    }
}

impl JsonRpcBatch {
    fn push_response(&self, answer: impl FnOnce(&mut Vec<u8>)) {
        let mut answers = self.lock_responses();
        let before = if answers.is_empty() { b'[' } else { b',' };
        answers.push(before);
        answer(&mut answers);
        // The end of a line, which comes after the last one only.
        answers.pop_if(|end| *end == b'\n');
    }

    /// Refuses a request where too much is answered already.
    pub(super) fn check_size(&self, line: &[u8]) -> Result<(), MessageError> {
        if self.lock_responses().len() <= json_rpc_batch::MAX_RESPONSE_BYTES {
            return Ok(());
        }
        message::request_id(line)
            .map_or(Ok(()), |id| Err(MessageError::too_many_requests(Some(id))))
    }

    /// Sends the answers that are there.
    fn send_responses(&self) {
        let mut answers = std::mem::take(&mut *self.lock_responses());
        if !answers.is_empty() {
            answers.extend_from_slice(b"]\n");
            self.out.enqueue(|queue| queue.append(&mut answers));
        }
    }

    fn lock_responses(&self) -> MutexGuard<'_, Vec<u8>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for JsonRpcBatch {
    fn drop(&mut self) {
        self.send_responses();
    }
}

/// The batches of one peer.
#[derive(Default)]
pub(super) struct BatchQueue {
    /// What came together and is not looked at yet.
    messages: VecDeque<(Box<[u8]>, Arc<JsonRpcBatch>)>,
    /// Those whose answers have not left.
    open: Vec<Weak<JsonRpcBatch>>,
}

impl BatchQueue {
    /// Takes a batch apart.
    pub(super) fn enqueue_batch(
        &mut self,
        line: &[u8],
        out: &Arc<LineWriter>,
    ) -> Result<(), MessageError> {
        let messages = json_rpc_batch::split_batch(line)?;
        if self.unsent_bytes() > json_rpc_batch::MAX_RESPONSE_BYTES {
            return Err(MessageError::too_many_requests(None));
        }
        let together = Arc::new(JsonRpcBatch { out: Arc::clone(out), answers: Mutex::default() });
        for message in messages {
            match message {
                Ok(text) => {
                    self.messages.push_back((text.as_bytes().into(), Arc::clone(&together)))
                }
                Err(fault) => together
                    .push_response(|queue| response_writer::message(queue, &fault.to_response())),
            }
        }
        self.open.push(Arc::downgrade(&together));
        Ok(())
    }

    /// The next message, and those that it came with.
    pub(super) fn next_message(&mut self) -> Option<(Box<[u8]>, Arc<JsonRpcBatch>)> {
        self.messages.pop_front()
    }

    /// Sends all answers that are there: no others will come.
    pub(super) fn send_all(&mut self) {
        for together in self.open.drain(..).filter_map(|it| it.upgrade()) {
            together.send_responses();
        }
    }

    /// How many bytes of answers wait for others.
    fn unsent_bytes(&mut self) -> usize {
        self.open.retain(|it| it.strong_count() > 0);
        let open = self.open.iter().filter_map(Weak::upgrade);
        open.map(|it| it.lock_responses().len()).sum()
    }
}
