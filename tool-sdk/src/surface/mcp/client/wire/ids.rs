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

use super::super::remote::RemoteError;
use super::ears::Ears;
use super::lines::Overflow;

/// Ids stay exact for peers that parse numbers as doubles.
const START_BITS: u32 = 52;

/// More requests than any connection has.
const MOST: i64 = 1 << 40;

/// How many requests of a server may be open.
const MOST_UNANSWERED: usize = 64;

/// From this many open requests on, the task yields before it reads the next message.
const MANY_UNANSWERED: usize = MOST_UNANSWERED / 4;

/// How much of an unknown version is shown, in characters.
const MOST_OF_NAME: usize = 40;

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Its response.
    Answer,
    /// Notifications, for as long as the connection lasts.
    News,
}

/// A transport that lets only requested responses through.
pub(super) struct Guarded<T> {
    inner: T,
    start: i64,
    /// The requests without a response, by rmcp's ids.
    open: Mutex<HashMap<i64, Waits>>,
    /// How long the 2026 handshake may take.
    patience: Option<Duration>,
    /// The 2026 handshake request, and its deadline.
    meeting: Option<(i64, Instant)>,
    /// The `initialize` request.
    greeting: Option<i64>,
    /// The server's requests without a response.
    unanswered: Arc<Mutex<Vec<RequestId>>>,
    overflow: Overflow,
    ears: Arc<Ears>,
    /// Triggered at the end of the connection.
    closed: CancellationToken,
}

impl<T> Guarded<T> {
    pub(super) fn new(
        inner: T,
        patience: Option<Duration>,
        overflow: Overflow,
        ears: Arc<Ears>,
        closed: CancellationToken,
    ) -> Result<Self, RemoteError> {
        let random = getrandom::u64().map_err(|error| {
            RemoteError::connection("cannot get random numbers from the system")
                .because(io::Error::from(error))
        })?;
        // The remaining bits fit into an `i64`.
        let start = (random >> (u64::BITS - START_BITS)).cast_signed();
        let (open, unanswered) = (Mutex::default(), Arc::default());
        let (meeting, greeting) = (None, None);
        Ok(Self {
            inner,
            start,
            open,
            patience,
            meeting,
            greeting,
            unanswered,
            overflow,
            ears,
            closed,
        })
    }

    /// Replaces an id of rmcp by the id on the wire.
    fn disguise(&self, id: &mut RequestId) -> Option<i64> {
        let RequestId::Number(number) = *id else { return None };
        *id = RequestId::Number(self.start + number);
        Some(number)
    }

    /// Returns rmcp's id for an id on the wire, if it is one of ours.
    fn known(&self, id: &RequestId) -> Option<i64> {
        let number = match id {
            RequestId::Number(number) => *number,
            // Some servers write numbers as strings.
            RequestId::String(text) => text.parse().ok()?,
        };
        number.checked_sub(self.start).filter(|number| (0..MOST).contains(number))
    }

    /// Rewrites the ids in an outgoing message.
    fn outgoing(&mut self, message: &mut TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(request) => {
                let number = self.disguise(&mut request.id);
                if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                    let until = self.patience.map(|patience| Instant::now() + patience);
                    self.meeting = number.zip(until);
                }
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.greeting = number;
                }
                let waits = match request.request {
                    ClientRequest::SubscriptionsListenRequest(_) => Waits::News,
                    _ => Waits::Answer,
                };
                self.open().extend(number.map(|number| (number, waits)));
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &mut told.notification
                    && let Some(id) = &mut cancelled.params.request_id
                    && let Some(number) = self.disguise(id)
                {
                    self.open().remove(&number);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Returns the version in the response to `initialize`, if it is not supported.
    fn misfit<'a>(&self, message: &'a RxJsonRpcMessage<RoleClient>) -> Option<&'a str> {
        let JsonRpcMessage::Response(answer) = message else { return None };
        let ServerResult::InitializeResult(begun) = &answer.result else { return None };
        let is_first = self.greeting.is_some() && self.known(&answer.id) == self.greeting;
        let version = &begun.protocol_version;
        let fits = version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(version);
        (is_first && !fits).then_some(version.as_str())
    }

    /// Rewrites the ids in an incoming message; returns whether it is passed on.
    fn incoming(&self, message: &mut RxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Response(answer) => {
                if let ServerResult::SubscriptionsListenResult(result) = &mut answer.result
                    && let Some(id) = result.meta.subscription_id()
                    && let Some(number) = self.known(&id)
                {
                    result.meta.set_subscription_id(RequestId::Number(number));
                }
                self.answered(&mut answer.id)
            }
            JsonRpcMessage::Error(error) => match &mut error.id {
                Some(id) => self.answered(id),
                // The server could not read the id: assign the error to the only open request.
                None => {
                    let only = self.take_only();
                    error.id = only.map(RequestId::Number);
                    true
                }
            },
            JsonRpcMessage::Notification(told) => self.concerns(&mut told.notification),
            JsonRpcMessage::Request(request) => {
                locked(&self.unanswered).push(request.id.clone());
                true
            }
        }
    }

    /// Whether rmcp needs this notification. The others are handled here, so that a flood of them is
    /// cheap.
    fn concerns(&self, told: &mut ServerNotification) -> bool {
        let meta = told.get_meta_mut();
        let subscription = meta.subscription_id();
        if let Some(number) = subscription.as_ref().and_then(|id| self.known(id)) {
            meta.set_subscription_id(RequestId::Number(number));
        }
        match told {
            // Also on a subscription, whose queue in rmcp is limited.
            ServerNotification::ToolListChangedNotification(_) => {
                self.ears.heard_of_change();
                false
            }
            // Handled here, so that no progress arrives after the response.
            ServerNotification::ProgressNotification(progress) => {
                self.ears.heard_of_progress(progress.params.clone());
                false
            }
            ServerNotification::CancelledNotification(cancelled) => {
                let Some(id) = &mut cancelled.params.request_id else { return false };
                // A request that the server cancels is not answered.
                let was_asked = settle(&self.unanswered, id);
                match self.known(id) {
                    Some(number) => *id = RequestId::Number(number),
                    None => return was_asked,
                }
                true
            }
            _ => subscription.is_some(),
        }
    }

    fn answered(&self, id: &mut RequestId) -> bool {
        let Some(number) = self.known(id) else { return false };
        *id = RequestId::Number(number);
        self.open().remove(&number).is_some()
    }

    /// Takes the only request that waits for a response, if there is exactly one.
    fn take_only(&self) -> Option<i64> {
        let mut open = self.open();
        let mut waiting = open.iter().filter(|(_, waits)| **waits == Waits::Answer);
        let (first, more) = (waiting.next(), waiting.next());
        let only = first.filter(|_| more.is_none()).map(|(number, _)| *number);
        only.inspect(|number| {
            open.remove(number);
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<i64, Waits>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Transport<RoleClient>> Guarded<T> {
    /// Returns the next message; an error response in the server's place if the 2026 handshake times out.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let Some((number, until)) =
            self.meeting.filter(|(number, _)| self.open().contains_key(number))
        else {
            return self.inner.receive().await;
        };
        if let Ok(received) = timeout_at(until, self.inner.receive()).await {
            return received;
        }
        self.meeting = None;
        let words = "the server did not answer in time";
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None);
        // As the server would write it; a late response is dropped.
        Some(JsonRpcMessage::error(error, Some(RequestId::Number(self.start + number))))
    }
}

fn locked(unanswered: &Mutex<Vec<RequestId>>) -> MutexGuard<'_, Vec<RequestId>> {
    unanswered.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a request of the server from the open ones; returns whether it was there.
fn settle(unanswered: &Mutex<Vec<RequestId>>, id: &RequestId) -> bool {
    let mut unanswered = locked(unanswered);
    let at = unanswered.iter().position(|one| one == id);
    at.map(|at| unanswered.swap_remove(at)).is_some()
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Guarded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.outgoing(&mut message);
        let answered = match &message {
            JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (sent, unanswered) = (self.inner.send(message), Arc::clone(&self.unanswered));
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                settle(&unanswered, &id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if locked(&self.unanswered).len() > MANY_UNANSWERED {
                tokio::task::yield_now().await;
            }
            match self.next().await {
                Some(mut message) => {
                    if let Some(version) = self.misfit(&message) {
                        let version: String = version.escape_debug().take(MOST_OF_NAME).collect();
                        self.overflow.note(format_args!(
                            "protocol version {version}, which is not supported"
                        ));
                        self.closed.cancel();
                        return None;
                    }
                    let counts = self.incoming(&mut message);
                    if locked(&self.unanswered).len() > MOST_UNANSWERED {
                        let most = format_args!("more than {MOST_UNANSWERED} requests at once");
                        self.overflow.note(most);
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

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
