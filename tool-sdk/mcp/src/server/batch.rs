//! JSON-RPC batches: the requests of a batch run side by side, and their responses are collected.
//!
//! **Invariant:** no handler depends on the batch, and the number of its messages and the size of
//! its responses are bounded.

use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use rmcp::model::{ErrorData, RequestId};
use serde::de::IgnoredAny;

use super::connection::Connection;
use super::dispatch::{DispatchedRequest, RunningRequest};
use super::message::{
    ClientMessage, MessageError, duplicate_id_error, parse_message, too_many_requests_error,
};
use super::message_sink::MessageSink;
use super::response::JsonRpcResponse;
use crate::json_rpc::{BatchMessages, MAX_BATCH_MESSAGES};

/// The maximum size of the collected responses of a batch. Beyond it, its remaining requests are
/// refused.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// A batch whose messages were dispatched.
#[derive(Default)]
pub(super) struct Batch {
    /// The responses that were not taken yet.
    responses: VecDeque<Vec<u8>>,
    /// The size of all responses so far.
    size: usize,
    /// The requests that do not run yet.
    queued: VecDeque<(RequestId, RunningRequest)>,
    running: FuturesUnordered<RunningEntry>,
    /// Whether one of the messages was a request.
    pub(super) has_request: bool,
}

/// A running request and its id.
type RunningEntry = Pin<Box<dyn Future<Output = (RequestId, Option<JsonRpcResponse>)> + Send>>;

impl Batch {
    /// Dispatches the messages of a batch in their order.
    pub(super) fn dispatch(
        connection: &Arc<Connection>,
        text: &[u8],
        sink: &MessageSink,
        user_agent: Option<&str>,
    ) -> Result<Self, MessageError> {
        if !connection.allows_batches() {
            return Err(unsupported_error(text));
        }
        let messages: BatchMessages<'_> =
            serde_json::from_slice(text).map_err(|_| MessageError::not_json())?;
        if messages.is_longer {
            return Err(MessageError::invalid_request(format!(
                "a batch has more than {MAX_BATCH_MESSAGES} messages; send them in several batches"
            )));
        }
        if messages.messages.is_empty() {
            return Err(MessageError::invalid_request("a batch must have at least one message"));
        }
        let (mut batch, mut ids) = (Self::default(), HashSet::new());
        for message in messages.messages {
            match parse_message(message.get().as_bytes()) {
                Ok(ClientMessage::Request(request)) => {
                    batch.has_request = true;
                    let id = request.id.clone();
                    let refused = if request.method == "initialize" {
                        let words = "`initialize` must not be part of a batch";
                        Some(ErrorData::invalid_request(words, None))
                    } else {
                        (!ids.insert(id.clone())).then(duplicate_id_error)
                    };
                    match refused {
                        Some(error) => batch.push(JsonRpcResponse::error(Some(&id), &error)),
                        None => match connection.begin_request(request, sink.clone(), user_agent) {
                            DispatchedRequest::Answered(response) => batch.push(response),
                            DispatchedRequest::Running { request, .. } => {
                                batch.queued.push_back((id, request));
                            }
                        },
                    }
                }
                Ok(other) => connection.handle_other(other),
                Err(refused) => {
                    batch.has_request |= refused.id.is_some();
                    batch.push(refused.into());
                }
            }
        }
        Ok(batch)
    }

    fn push(&mut self, response: JsonRpcResponse) {
        self.size += response.text.len();
        self.responses.push_back(response.text);
    }

    /// Adds the response of a request, or an error in its place if there is no room for it. A
    /// cancelled request has no response.
    fn push_ended(&mut self, (id, response): (RequestId, Option<JsonRpcResponse>)) {
        match response {
            Some(_) if self.size > MAX_RESPONSE_BYTES => {
                self.push(JsonRpcResponse::error(Some(&id), &too_many_requests_error()));
            }
            Some(response) => self.push(response),
            None => {}
        }
    }

    /// Polls each queued request once, so that those that need not wait are answered.
    pub(super) fn start(&mut self) {
        while let Some((id, request)) = self.queued.pop_front() {
            if self.size > MAX_RESPONSE_BYTES {
                self.push(JsonRpcResponse::error(Some(&id), &too_many_requests_error()));
                continue;
            }
            self.running.push(Box::pin(async move { (id, request.await) }));
            while let Some(Some(ended)) = self.running.next().now_or_never() {
                self.push_ended(ended);
            }
        }
    }

    /// Returns true if no request runs.
    pub(super) fn is_finished(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the next response, or `None` when there are no more.
    pub(super) async fn next_response(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(response) = self.responses.pop_front() {
                return Some(response);
            }
            let ended = self.running.next().await?;
            self.push_ended(ended);
        }
    }

    /// Waits until no request runs.
    pub(super) async fn finish(&mut self) {
        while let Some(ended) = self.running.next().await {
            self.push_ended(ended);
        }
    }

    /// Returns the collected responses as one array; `None` if there are none.
    pub(super) fn take_array(&mut self) -> Option<Vec<u8>> {
        let mut array = Vec::with_capacity(self.size + self.responses.len() + 1);
        for response in self.responses.drain(..) {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend_from_slice(&response);
        }
        if array.is_empty() {
            return None;
        }
        array.push(b']');
        Some(array)
    }
}

/// Returns the error for a batch from a client that may not send any.
pub(super) fn unsupported_error(text: &[u8]) -> MessageError {
    match serde_json::from_slice(text) {
        Ok(IgnoredAny) => MessageError::invalid_request(
            "batches are only supported in sessions of protocol version 2025-03-26",
        ),
        Err(_) => MessageError::not_json(),
    }
}
