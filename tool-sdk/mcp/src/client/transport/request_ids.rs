//! Makes request ids unpredictable, and drops responses that were not requested.
//!
//! rmcp counts its requests from 0. On the wire they are counted from a random number, so that a
//! server cannot answer a request before it has seen it; and each request is answered once. Open
//! requests of the server are counted and limited.
//!
//! A server that does not answer the 2026 handshake in time gets the same treatment as one that does
//! not know it, because rmcp's own timeout is much longer. A server that answers `initialize` with a
//! version without this handshake is disconnected.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, GetMeta as _, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerNotification, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::line_transport::ProtocolViolation;
use super::notifications::{NotificationHandler, log_message};
use crate::client::remote::{OfferChange, RemoteError};

/// Ids stay exact for peers that parse numbers as doubles.
const ID_BITS: u32 = 52;

/// More requests than any connection has.
const MAX_REQUESTS: i64 = 1 << 40;

/// How many requests of a server may be open.
const MAX_UNANSWERED: usize = 64;

/// From this many open requests on, the task yields before it reads the next message.
const YIELD_THRESHOLD: usize = MAX_UNANSWERED / 4;

/// How much of an unknown version is shown, in characters.
const MAX_VERSION_CHARS: usize = 40;

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// Its response.
    Response,
    /// Notifications, for as long as the connection lasts.
    Notifications,
}

/// A transport that lets only requested responses through.
pub(super) struct RequestIdGuard<T> {
    inner: T,
    first_id: i64,
    /// The requests without a response, by rmcp's ids.
    pending: Mutex<HashMap<i64, Awaited>>,
    /// How long the 2026 handshake may take.
    discover_timeout: Option<Duration>,
    /// The 2026 handshake request, and its deadline.
    discover_request: Option<(i64, Instant)>,
    /// The `initialize` request.
    initialize_request: Option<i64>,
    /// The server's requests without a response.
    unanswered: Arc<Mutex<Vec<RequestId>>>,
    violation: ProtocolViolation,
    notifications: Arc<NotificationHandler>,
    /// Triggered at the end of the connection.
    closed: CancellationToken,
}

impl<T> RequestIdGuard<T> {
    pub(super) fn new(
        inner: T,
        patience: Option<Duration>,
        violation: ProtocolViolation,
        notifications: Arc<NotificationHandler>,
        closed: CancellationToken,
    ) -> Result<Self, RemoteError> {
        let random = getrandom::u64().map_err(|error| {
            RemoteError::connection("cannot get random numbers from the system")
                .with_source(io::Error::from(error))
        })?;
        // The remaining bits fit into an `i64`.
        let start = (random >> (u64::BITS - ID_BITS)).cast_signed();
        let (open, unanswered) = (Mutex::default(), Arc::default());
        let (meeting, greeting) = (None, None);
        Ok(Self {
            inner,
            first_id: start,
            pending: open,
            discover_timeout: patience,
            discover_request: meeting,
            initialize_request: greeting,
            unanswered,
            violation,
            notifications,
            closed,
        })
    }

    /// Replaces an id of rmcp by the id on the wire.
    fn to_wire_id(&self, id: &mut RequestId) -> Option<i64> {
        let RequestId::Number(number) = *id else { return None };
        *id = RequestId::Number(self.first_id + number);
        Some(number)
    }

    /// Returns rmcp's id for an id on the wire, if it is one of ours.
    fn client_id(&self, id: &RequestId) -> Option<i64> {
        let number = match id {
            RequestId::Number(number) => *number,
            // Some servers write numbers as strings.
            RequestId::String(text) => text.parse().ok()?,
        };
        number.checked_sub(self.first_id).filter(|number| (0..MAX_REQUESTS).contains(number))
    }

    /// Rewrites the ids in an outgoing message.
    fn rewrite_outgoing(&mut self, message: &mut TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(request) => {
                let number = self.to_wire_id(&mut request.id);
                if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                    let until = self.discover_timeout.map(|patience| Instant::now() + patience);
                    self.discover_request = number.zip(until);
                }
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.initialize_request = number;
                }
                let waits = match request.request {
                    ClientRequest::SubscriptionsListenRequest(_) => Awaited::Notifications,
                    _ => Awaited::Response,
                };
                self.lock_pending().extend(number.map(|number| (number, waits)));
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &mut told.notification
                    && let Some(id) = &mut cancelled.params.request_id
                    && let Some(number) = self.to_wire_id(id)
                {
                    self.lock_pending().remove(&number);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Returns the version in the response to `initialize`, if it is not supported.
    fn unsupported_version<'a>(
        &self,
        message: &'a RxJsonRpcMessage<RoleClient>,
    ) -> Option<&'a str> {
        let JsonRpcMessage::Response(answer) = message else { return None };
        let ServerResult::InitializeResult(begun) = &answer.result else { return None };
        let is_first = self.initialize_request.is_some()
            && self.client_id(&answer.id) == self.initialize_request;
        let version = &begun.protocol_version;
        let fits = version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(version);
        (is_first && !fits).then_some(version.as_str())
    }

    /// Rewrites the ids in an incoming message; returns whether it is passed on.
    fn rewrite_incoming(&self, message: &mut RxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Response(answer) => {
                if let ServerResult::SubscriptionsListenResult(result) = &mut answer.result
                    && let Some(id) = result.meta.subscription_id()
                    && let Some(number) = self.client_id(&id)
                {
                    result.meta.set_subscription_id(RequestId::Number(number));
                }
                self.take_pending(&mut answer.id)
            }
            JsonRpcMessage::Error(error) => match &mut error.id {
                Some(id) => self.take_pending(id),
                // The server could not read the id: assign the error to the only open request.
                None => {
                    let only = self.take_only_pending();
                    error.id = only.map(RequestId::Number);
                    true
                }
            },
            JsonRpcMessage::Notification(told) => self.rewrite_notification(&mut told.notification),
            JsonRpcMessage::Request(request) => {
                lock_unanswered(&self.unanswered).push(request.id.clone());
                true
            }
        }
    }

    /// Whether rmcp needs this notification. The others are handled here, so that a flood of them is
    /// cheap.
    fn rewrite_notification(&self, told: &mut ServerNotification) -> bool {
        let meta = told.get_meta_mut();
        let subscription = meta.subscription_id();
        if let Some(number) = subscription.as_ref().and_then(|id| self.client_id(id)) {
            meta.set_subscription_id(RequestId::Number(number));
        }
        match told {
            // Also on a subscription, whose queue in rmcp is limited.
            ServerNotification::ToolListChangedNotification(_) => {
                self.notifications.notify_change();
                false
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                self.notifications.offer_changes().record(OfferChange::ResourceList);
                false
            }
            ServerNotification::PromptListChangedNotification(_) => {
                self.notifications.offer_changes().record(OfferChange::PromptList);
                false
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                let uri = updated.params.uri.clone();
                self.notifications.offer_changes().record(OfferChange::Resource(uri));
                false
            }
            // Handled here, so that no progress arrives after the response.
            ServerNotification::ProgressNotification(progress) => {
                self.notifications.dispatch_progress(progress.params.clone());
                false
            }
            ServerNotification::LoggingMessageNotification(message) => {
                log_message(&message.params);
                false
            }
            ServerNotification::CancelledNotification(cancelled) => {
                let Some(id) = &mut cancelled.params.request_id else { return false };
                // A request that the server cancels is not answered.
                let was_asked = remove_unanswered(&self.unanswered, id);
                match self.client_id(id) {
                    Some(number) => *id = RequestId::Number(number),
                    None => return was_asked,
                }
                true
            }
            _ => subscription.is_some(),
        }
    }

    fn take_pending(&self, id: &mut RequestId) -> bool {
        let Some(number) = self.client_id(id) else { return false };
        *id = RequestId::Number(number);
        self.lock_pending().remove(&number).is_some()
    }

    /// Takes the only request that waits for a response, if there is exactly one.
    fn take_only_pending(&self) -> Option<i64> {
        let mut open = self.lock_pending();
        let mut waiting = open.iter().filter(|(_, waits)| **waits == Awaited::Response);
        let (first, more) = (waiting.next(), waiting.next());
        let only = first.filter(|_| more.is_none()).map(|(number, _)| *number);
        only.inspect(|number| {
            open.remove(number);
        })
    }

    fn lock_pending(&self) -> MutexGuard<'_, HashMap<i64, Awaited>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Transport<RoleClient>> RequestIdGuard<T> {
    /// Returns the next message; an error response in the server's place if the 2026 handshake times out.
    async fn receive_next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let Some((number, until)) =
            self.discover_request.filter(|(number, _)| self.lock_pending().contains_key(number))
        else {
            return self.inner.receive().await;
        };
        if let Ok(received) = timeout_at(until, self.inner.receive()).await {
            return received;
        }
        self.discover_request = None;
        let words = "the server did not answer in time";
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None);
        // As the server would write it; a late response is dropped.
        Some(JsonRpcMessage::error(error, Some(RequestId::Number(self.first_id + number))))
    }
}

fn lock_unanswered(unanswered: &Mutex<Vec<RequestId>>) -> MutexGuard<'_, Vec<RequestId>> {
    unanswered.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a request of the server from the open ones; returns whether it was there.
fn remove_unanswered(unanswered: &Mutex<Vec<RequestId>>, id: &RequestId) -> bool {
    let mut unanswered = lock_unanswered(unanswered);
    let at = unanswered.iter().position(|one| one == id);
    at.map(|at| unanswered.swap_remove(at)).is_some()
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for RequestIdGuard<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.rewrite_outgoing(&mut message);
        let answered = match &message {
            JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (sent, unanswered) = (self.inner.send(message), Arc::clone(&self.unanswered));
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                remove_unanswered(&unanswered, &id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if lock_unanswered(&self.unanswered).len() > YIELD_THRESHOLD {
                tokio::task::yield_now().await;
            }
            match self.receive_next().await {
                Some(mut message) => {
                    if let Some(version) = self.unsupported_version(&message) {
                        let version: String =
                            version.escape_debug().take(MAX_VERSION_CHARS).collect();
                        self.violation.record(format_args!(
                            "protocol version {version}, which is not supported"
                        ));
                        self.closed.cancel();
                        return None;
                    }
                    let counts = self.rewrite_incoming(&mut message);
                    if lock_unanswered(&self.unanswered).len() > MAX_UNANSWERED {
                        let most = format_args!("more than {MAX_UNANSWERED} requests at once");
                        self.violation.record(most);
                        self.closed.cancel();
                        return None;
                    }
                    if counts {
                        return Some(message);
                    }
                    tracing::debug!("dropped a message without a request");
                }
                None => {
                    self.closed.cancel();
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closed.cancel();
        self.inner.close().await
    }
}

impl<T> Drop for RequestIdGuard<T> {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
