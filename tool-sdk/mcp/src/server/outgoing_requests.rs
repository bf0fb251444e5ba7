//! The requests of the server to one client that are not answered yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ErrorData, RequestId, ServerJsonRpcMessage,
    ServerNotification, ServerRequest,
};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::message_sink::{ClientDisconnected, MessageSink};

/// The client's response: its result, or its error.
type ClientAnswer = Result<Value, ErrorData>;

/// The requests that wait for the client's response.
#[derive(Default)]
pub(super) struct OutgoingRequests {
    next_id: AtomicI64,
    waiting: Mutex<HashMap<RequestId, oneshot::Sender<ClientAnswer>>>,
    /// Triggered when the client has disconnected, so that no response can come.
    pub(super) disconnected: CancellationToken,
}

impl OutgoingRequests {
    /// Sends a request and waits for the response. If the caller stops waiting, the request is
    /// cancelled.
    pub(super) async fn send_request(
        &self,
        sink: &MessageSink,
        request: ServerRequest,
    ) -> Result<ClientAnswer, ClientDisconnected> {
        let id = RequestId::Number(self.next_id.fetch_add(1, Ordering::Relaxed));
        let (answered, answer) = oneshot::channel();
        self.lock_waiting().insert(id.clone(), answered);
        let waiting = WaitingRequest { requests: self, sink, id: id.clone() };
        sink.send_message(&ServerJsonRpcMessage::request(request, id)).await?;
        let answer = self.disconnected.run_until_cancelled(answer).await;
        drop(waiting);
        answer.ok_or(ClientDisconnected)?.map_err(|_| ClientDisconnected)
    }

    /// Delivers the client's response to the request that waits for it, if there is one.
    pub(super) fn resolve(&self, id: &RequestId, answer: ClientAnswer) {
        if let Some(waiting) = self.lock_waiting().remove(id) {
            // The request may have been given up just now.
            let _ = waiting.send(answer);
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<ClientAnswer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request without a response. Sends a cancellation when dropped before that comes.
struct WaitingRequest<'a> {
    requests: &'a OutgoingRequests,
    sink: &'a MessageSink,
    id: RequestId,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if self.requests.lock_waiting().remove(&self.id).is_none() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let cancelled = CancelledNotificationParam::new(Some(self.id.clone()), None);
        let cancelled = CancelledNotification::new(cancelled);
        let sink = self.sink.clone();
        let mut sending = Box::pin(async move {
            // The client may have disconnected.
            let _ = sink.notify(ServerNotification::CancelledNotification(cancelled)).await;
        });
        // At once if possible: the stream of the request may end with this call.
        if sending.as_mut().now_or_never().is_none() {
            runtime.spawn(sending);
        }
    }
}
