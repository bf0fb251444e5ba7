//! Ids of requests that nobody can guess, and answers that nobody asked for.
//!
//! The library counts its requests from nought. On the wire they are counted from a random
//! number, so that an answer has to have seen its question; and an answer counts once. What
//! the server asks is counted until the answer is written: nobody keeps a flood of questions.
//!
//! A server that says nothing for too long when it is met as one of today is taken for one that
//! knows no such question, so that older ones do not cost the library's patience at every start.
//! One that is met as an older one and names a version that has no such beginning is left.

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

/// Ids stay whole numbers also for those who read numbers as doubles.
const START_BITS: u32 = 52;

/// More requests than one connection ever sees.
const MOST: i64 = 1 << 40;

/// How many requests of a server may wait for their answers.
const MOST_UNANSWERED: usize = 64;

/// From how many on whoever answers has its turn before the next message is read.
const MANY_UNANSWERED: usize = MOST_UNANSWERED / 4;

/// How much is told of the name of a version.
const MOST_OF_NAME: usize = 40;

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Its answer.
    Answer,
    /// News, for as long as there is a connection.
    News,
}

/// A transport on which only what was asked for is answered.
pub(super) struct Guarded<T> {
    inner: T,
    start: i64,
    /// The requests without an answer, by the library's ids, and what each waits for.
    open: Mutex<HashMap<i64, Waits>>,
    /// For how long a server may say nothing when it is met as one of today.
    patience: Option<Duration>,
    /// The request that meets it so, and until when it is answered.
    meeting: Option<(i64, Instant)>,
    /// The request that meets it as an older one.
    greeting: Option<i64>,
    /// The server's requests without an answer.
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
            RemoteError::connection("the system has no random numbers")
                .because(io::Error::from(error))
        })?;
        // What is left fits into a number with a sign.
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

    /// An id of the library as the server sees it.
    fn disguise(&self, id: &mut RequestId) -> Option<i64> {
        let RequestId::Number(number) = *id else { return None };
        *id = RequestId::Number(self.start + number);
        Some(number)
    }

    /// The library's id for one that the server names, when it is one of ours.
    fn known(&self, id: &RequestId) -> Option<i64> {
        let number = match id {
            RequestId::Number(number) => *number,
            // Some write numbers as texts.
            RequestId::String(text) => text.parse().ok()?,
        };
        number.checked_sub(self.start).filter(|number| (0..MOST).contains(number))
    }

    /// Writes an outgoing message as the server shall see it.
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

    /// The version that an older server names, where it is none in which it can be talked to so.
    fn misfit<'a>(&self, message: &'a RxJsonRpcMessage<RoleClient>) -> Option<&'a str> {
        let JsonRpcMessage::Response(answer) = message else { return None };
        let ServerResult::InitializeResult(begun) = &answer.result else { return None };
        let is_first = self.greeting.is_some() && self.known(&answer.id) == self.greeting;
        let version = &begun.protocol_version;
        let fits = version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(version);
        (is_first && !fits).then_some(version.as_str())
    }

    /// Reads an incoming message as the library wants it; whether it counts at all.
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
                // A server that could not read who asked.
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

    /// Whether the library has to hear of this. What is heard here makes no work for it, so
    /// that a flood of it costs little more than its bytes.
    fn concerns(&self, told: &mut ServerNotification) -> bool {
        let meta = told.get_meta_mut();
        let subscription = meta.subscription_id();
        if let Some(number) = subscription.as_ref().and_then(|id| self.known(id)) {
            meta.set_subscription_id(RequestId::Number(number));
        }
        match told {
            // Also that of a subscription, where the library keeps only so many.
            ServerNotification::ToolListChangedNotification(_) => {
                self.ears.heard_of_change();
                false
            }
            // Told here, so that no step comes after the answer.
            ServerNotification::ProgressNotification(progress) => {
                self.ears.heard_of_progress(progress.params.clone());
                false
            }
            ServerNotification::CancelledNotification(cancelled) => {
                let Some(id) = &mut cancelled.params.request_id else { return false };
                // What the server takes back is not answered.
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

    /// Takes the one request that waits for an answer, where it is the only one.
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
    /// The next message; a refusal in the server's place when it does not know how it is met.
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
        let words = "the server does not say whether it is one of today";
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None);
        // As the server would write it; should it answer late, nobody asked.
        Some(JsonRpcMessage::error(error, Some(RequestId::Number(self.start + number))))
    }
}

fn locked(unanswered: &Mutex<Vec<RequestId>>) -> MutexGuard<'_, Vec<RequestId>> {
    unanswered.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nobody waits for the answer to this request of the server any more; says whether anybody
/// did.
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
                            "version {version} of the protocol, which is not spoken here"
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
                    tracing::debug!("a message that nobody waits for was dropped");
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
