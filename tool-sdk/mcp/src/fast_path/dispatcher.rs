//! Dispatches the lines of a client: answers them or prepares them for rmcp.
//!
//! **Invariant:** a message with an unknown key goes to rmcp, and no two requests in flight have
//! the same id.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _,
    JsonRpcMessage,
};
use tokio::task::JoinSet;
use tool_sdk_core::{Outcome, ToolsetView, internal::LazyCancelToken};

use super::call_buffers::CallBuffers;
use super::fast_request::{FastRequest, ToolCall};
use super::in_flight::{InFlightRequests, OpenRequest, id_json};
use super::json_rpc_batch::{JsonRpcBatch, write_response};
use super::line_writer::LineWriter;
use super::response_writer;
use super::{FastPathGate, OpenSession};
use crate::listing::ToolListing;
use crate::message;
use crate::message::{MessageError, MessageKind};
use crate::result::ContentSupport;
use crate::ui::UiSupport;

/// Where lines are answered.
pub(super) struct RequestDispatcher {
    pub(super) listing: Arc<ToolListing>,
    pub(super) gate: Arc<FastPathGate>,
    pub(super) writer: Arc<LineWriter>,
    /// Calls that had to wait. They end with the connection.
    pub(super) running: JoinSet<()>,
    pub(super) in_flight: Arc<InFlightRequests>,
    /// What the last call was made of, when it has ended.
    pub(super) spare_buffers: Option<CallBuffers>,
    /// The peer has sent what a connection begins with.
    pub(super) is_initialized: bool,
    /// The runtime has one thread, so spawning a call does not unblock other requests.
    pub(super) is_single_threaded: bool,
}

impl OpenSession {
    fn toolset_view(&self) -> Arc<ToolsetView> {
        self.pipeline.toolset().view_for(&self.session)
    }
}

impl RequestDispatcher {
    /// Forgets the calls that have ended.
    pub(super) fn reap_finished(&mut self, cx: &mut Context<'_>) {
        while !self.running.is_empty()
            && let Poll::Ready(Some(_)) = self.running.poll_join_next(cx)
        {}
    }

    /// Answers a line, or gives what rmcp has to answer. The answer to one of a `batch` goes
    /// there.
    pub(super) fn dispatch(
        &mut self,
        line: &[u8],
        batch: Option<&Arc<JsonRpcBatch>>,
    ) -> Result<Option<ClientJsonRpcMessage>, MessageError> {
        if line.is_empty() || self.try_respond(line, batch) {
            return Ok(None);
        }
        decode_line(line).and_then(|message| self.track_forwarded(message, batch))
    }

    /// Whether the line is answered, or will be.
    fn try_respond(&mut self, line: &[u8], batch: Option<&Arc<JsonRpcBatch>>) -> bool {
        let Some(talk) = self.gate.session.get().cloned() else { return false };
        let (simple, among) = (FastRequest::parse_line(line), batch.map(|batch| &**batch));
        if let Some(id) = simple
            .as_ref()
            .and_then(FastRequest::request_id)
            .filter(|id| self.in_flight.contains(id))
        {
            let fault = MessageError::duplicate_id(serde_json::from_str(id).ok());
            write_response(&self.writer, among, |queue| {
                response_writer::message(queue, &fault.to_response())
            });
            return true;
        }
        match simple {
            Some(FastRequest::Ping { id }) => {
                write_response(&self.writer, among, |queue| {
                    response_writer::write_result(queue, id, "{}")
                });
            }
            Some(FastRequest::List { id, cursor }) => {
                let list = self.listing.page_json(&talk.toolset_view(), talk.ui, cursor.as_deref());
                let Some(list) = list else { return false };
                write_response(&self.writer, among, |queue| {
                    response_writer::write_result(queue, id, &list)
                });
            }
            Some(FastRequest::Call { id, call }) => {
                let view = talk.toolset_view();
                let Some(tool) = view.find(&call.name) else { return false };
                let asked = CallContext {
                    batch: batch.cloned(),
                    view,
                    tool,
                    support: (talk.ui, talk.blocks),
                };
                self.start_call(talk, id, asked, &call);
            }
            Some(FastRequest::Cancelled { id }) => return self.in_flight.cancel_call(id),
            None => return false,
        }
        true
    }

    /// Writes down what rmcp is given.
    fn track_forwarded(
        &mut self,
        message: Option<ClientJsonRpcMessage>,
        batch: Option<&Arc<JsonRpcBatch>>,
    ) -> Result<Option<ClientJsonRpcMessage>, MessageError> {
        self.is_initialized |= message.as_ref().is_some_and(begins_connection);
        if let Some(JsonRpcMessage::Request(request)) = &message
            && !self
                .in_flight
                .insert(OpenRequest::new(id_json(&request.id)).with_batch(batch.cloned()))
        {
            return Err(MessageError::duplicate_id(Some(request.id.clone())));
        }
        if let Some(JsonRpcMessage::Notification(it)) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &it.notification
            && let Some(id) = cancelled.params.request_id.as_ref().map(id_json)
        {
            // The id may be spelt in another way than it was.
            if self.in_flight.cancel_call(&id) {
                return Ok(None);
            }
            // rmcp does not answer what was taken back.
            self.in_flight.remove(&id);
        }
        // It would give up a peer that says anything before it begins, such as that it takes back
        // what it tried.
        if !self.is_initialized && matches!(message, Some(JsonRpcMessage::Notification(_))) {
            return Ok(None);
        }
        Ok(message)
    }

    fn start_call(
        &mut self,
        talk: Arc<OpenSession>,
        id: &str,
        asked: CallContext,
        call: &ToolCall<'_>,
    ) {
        let order = match self.spare_buffers.take() {
            Some(order) => order.reuse(call),
            None => CallBuffers::from_call(call),
        };
        let cancel = order.cancel.clone();
        // Written where it stays: moved there, all of its room would be copied.
        let mut running = Box::into_pin(Box::write(Box::new_uninit(), async move {
            let outcome = talk.pipeline.call(&talk.session, order.to_call()).await;
            (outcome, order)
        }));
        if !self.is_single_threaded {
            return self.spawn_call(running, cancel, id, asked);
        }
        // The waker is not known before the call is spawned.
        let mut cx = Context::from_waker(Waker::noop());
        match running.as_mut().poll(&mut cx) {
            Poll::Ready((outcome, order)) => {
                asked.write_outcome(&self.writer, id, outcome);
                self.spare_buffers = Some(order);
            }
            Poll::Pending => self.spawn_call(running, cancel, id, asked),
        }
    }

    /// Goes on with a call on a task of its own.
    fn spawn_call(
        &mut self,
        running: Pin<Box<dyn Future<Output = (Outcome, CallBuffers)> + Send>>,
        cancel: LazyCancelToken,
        id: &str,
        asked: CallContext,
    ) {
        let id = Arc::<str>::from(id);
        self.in_flight.insert(OpenRequest::new(Arc::clone(&id)).cancelled_by(cancel.clone()));
        let (out, open) = (Arc::clone(&self.writer), Arc::clone(&self.in_flight));
        self.running.spawn(async move {
            // A call that goes with its connection is given up by everybody.
            let given_up = cancel.token().clone().drop_guard();
            let (outcome, _) = running.await;
            given_up.disarm();
            // A cancelled request gets no response.
            if !cancel.is_cancelled() {
                asked.write_outcome(&out, &id, outcome);
            }
            open.remove(&id);
            // The last one of a batch lets all of it leave.
            drop(asked);
            // A peer that is gone need not be told.
            let _ = std::future::poll_fn(|cx| out.poll_flush(cx)).await;
        });
    }
}

/// What a call that wants an answer is of.
struct CallContext {
    batch: Option<Arc<JsonRpcBatch>>,
    /// The tools as they were when the call came.
    view: Arc<ToolsetView>,
    /// The place of the tool among them.
    tool: usize,
    /// What the peer shows, and the blocks that it knows.
    support: (UiSupport, ContentSupport),
}

impl CallContext {
    fn write_outcome(&self, out: &LineWriter, id: &str, outcome: Outcome) {
        if let Some(definition) = self.view.definition_at(self.tool) {
            let answer = |queue: &mut Vec<u8>| {
                response_writer::write_outcome(queue, id, outcome, definition, self.support);
            };
            write_response(out, self.batch.as_deref(), answer);
        }
    }
}

/// Returns true if a connection begins with this message: `initialize` or a stateless request.
/// Before that, clients may only send pings.
fn begins_connection(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(message) = message else { return false };
    match &message.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => request.get_meta().protocol_version().is_some(),
    }
}

/// A line as rmcp's message; nothing where no answer is wanted to what is wrong with it.
fn decode_line(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, MessageError> {
    let kind = message::validate_message(line)?;
    let line = message::normalize_for_rmcp(line, &kind);
    let Some(mut message) = message::decode_message(&line) else {
        return message::undecodable_error(&line).map_or(Ok(None), Err);
    };
    message::reject_invalid_params(&message)?;
    if let (ClientJsonRpcMessage::Request(call), MessageKind::ToolCall(written)) =
        (&mut message, kind)
    {
        call.request.extensions_mut().insert(written);
    }
    Ok(Some(message))
}
