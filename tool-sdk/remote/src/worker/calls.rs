//! Prepares and runs the calls of hosts.
//!
//! **Invariant:** a permit is checked in full, and its nonce used, before anything runs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::header::HeaderMap;
use async_nats::service::Request;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, timeout};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::internal::SessionListener;
use tool_sdk_core::{Call, FailureRecord, Outcome, RawArgs, Signal, ToolError, ToolName};

use super::questions::{CallTimeLimit, ForwardingApprover, QuestionForwarder};
use super::{EndpointKind, RunTable, ToolOffer, WorkerState};
use crate::error::RemoteError;
use crate::permit::{Permit, PermitPurpose, now_ms};
use crate::protocol::{
    CallRequest, PrepareAnswer, RunBody, RunMessage, WorkerRefusal, arguments_digest,
    permit_header, with_trace,
};

/// How many messages of a running call may wait to be sent; further ones are counted.
const MAX_WAITING: usize = 1024;

/// How much longer than its deadline a call may run: the host ends it at the deadline.
const DEADLINE_GRACE: Duration = Duration::from_millis(500);

/// How long a message may wait to be sent, while the connection to the server is lost.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(2);

impl WorkerState {
    /// Answers one request.
    pub(super) async fn handle(self: Arc<Self>, kind: EndpointKind, request: Request) {
        match kind {
            EndpointKind::Prepare => {
                let answer = self.prepare(&request).await.unwrap_or_else(|refusal| {
                    self.count(refusal);
                    PrepareAnswer::Refused(refusal)
                });
                self.respond(&request, &answer).await;
            }
            EndpointKind::Run => self.run(&request).await,
            EndpointKind::Drain => {
                let accepted = self.accept_drain(&request);
                self.respond(&request, &accepted).await;
                if accepted.is_ok() {
                    self.drain.cancel();
                }
            }
        }
    }

    /// Describes a call.
    async fn prepare(&self, request: &Request) -> Result<PrepareAnswer, WorkerRefusal> {
        let permit = self.check_permit(request, PermitPurpose::Prepare)?;
        // A preview may show a file, and a replay would have it sent to another inbox.
        self.nonces.use_once(&permit.nonce, expiry(&permit), now_ms())?;
        let received = self.read_request(request).await?;
        if permit.binding != arguments_digest(&received.arguments) {
            return Err(WorkerRefusal::Permit);
        }
        // A worker that could not run the call sends it elsewhere now.
        if self.slots.available_permits() == 0 {
            return Err(WorkerRefusal::Busy);
        }
        let _turn = self.preparing.try_acquire().map_err(|_| WorkerRefusal::Busy)?;
        let session = self.sessions.session_for(&permit);
        let session = with_trace(session, request.message.headers.as_ref());
        let call = call_of(&permit, received);
        let described = timeout(permit.remaining(), self.pipeline.describe(&session, call)).await;
        Ok(match described.map_err(|_| WorkerRefusal::Expired)? {
            Ok(facts) => {
                PrepareAnswer::Prepared { worker: self.id.clone(), facts: Box::new(facts) }
            }
            Err(error) => PrepareAnswer::Failed(FailureRecord::from(&error)),
        })
    }

    /// Runs a call and reports on it until it has ended.
    async fn run(self: &Arc<Self>, request: &Request) {
        let mut seq = 0;
        let body = match self.run_accepted(request, &mut seq).await {
            Ok(outcome) => {
                if outcome.result.is_err() {
                    self.counters.failed.fetch_add(1, Ordering::Relaxed);
                }
                RunBody::Finished(Box::new(outcome.result.into()))
            }
            Err(refusal) => {
                self.count(refusal);
                RunBody::Refused(refusal)
            }
        };
        // A large result takes a while to reach the object store. What is numbered while it is on its
        // way comes before it.
        let message = RunMessage { seq: u64::MAX, body };
        let encoding = self.encode_answer(&message);
        if let Ok((headers, bytes)) = self.while_alive(request, &mut seq, encoding).await {
            self.send_answer(request, headers, bytes).await;
        }
    }

    /// Runs a call that the host may run.
    async fn run_accepted(
        self: &Arc<Self>,
        request: &Request,
        seq: &mut u64,
    ) -> Result<Outcome, WorkerRefusal> {
        let permit = self.check_permit(request, PermitPurpose::Run)?;
        if permit.worker != self.id {
            return Err(WorkerRefusal::Permit);
        }
        let _slot = self.slots.try_acquire().map_err(|_| WorkerRefusal::Busy)?;
        let cancel = self.register_run(&permit)?;
        let reading = self.read_request(request);
        let outcome = match self.while_alive(request, seq, reading).await {
            Ok(received) => Ok(self.run_permitted(request, &permit, received, &cancel, seq).await),
            Err(refusal) => Err(refusal),
        };
        self.lock_running().calls.remove(&permit.nonce);
        outcome
    }

    /// Uses the nonce of a permit; returns how the call is cancelled. Fails when the nonce was used,
    /// also by a cancellation that came first.
    fn register_run(&self, permit: &Permit) -> Result<CancellationToken, WorkerRefusal> {
        let mut running = self.lock_running();
        if running.cancelled.contains(&permit.nonce) {
            return Err(WorkerRefusal::Replayed);
        }
        self.nonces.use_once(&permit.nonce, expiry(permit), now_ms())?;
        let cancel = CancellationToken::new();
        running.calls.insert(permit.nonce.clone(), cancel.clone());
        Ok(cancel)
    }

    /// Reads the message of a request whose permit was checked; a few at a time, because a message in
    /// the object store can be large.
    async fn read_request(&self, request: &Request) -> Result<CallRequest, WorkerRefusal> {
        let _turn = self.reading.acquire().await.map_err(|_| WorkerRefusal::Busy)?;
        self.payloads.read(&request.message).await.map_err(|_| WorkerRefusal::Message)
    }

    /// Waits for `work`, and tells the host meanwhile that the worker is alive.
    async fn while_alive<T>(
        &self,
        request: &Request,
        seq: &mut u64,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        // Nothing has taken a while yet. The timer is registered when it is waited for.
        let heartbeat = self.config.heartbeat;
        let mut beats = interval_at(Instant::now() + heartbeat, heartbeat);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = beats.tick() => self.report(request, seq, RunBody::Alive).await,
            }
        }
    }

    /// Runs the call of a permit in the worker's pipeline, whose rules still count.
    async fn run_permitted(
        self: &Arc<Self>,
        request: &Request,
        permit: &Permit,
        received: CallRequest,
        cancel: &CancellationToken,
        seq: &mut u64,
    ) -> Outcome {
        let (sender, mut messages) = mpsc::channel(MAX_WAITING);
        let limit = Arc::new(CallTimeLimit::new(permit.remaining() + DEADLINE_GRACE));
        let questions = Arc::new(QuestionForwarder::new(
            Arc::clone(self),
            permit,
            sender.clone(),
            Arc::clone(&limit),
            received.has_forms,
        ));
        let signals = Arc::new(SignalForwarder::new(sender));
        let session = self.sessions.session_for(permit);
        let session = with_trace(session, request.message.headers.as_ref())
            .with_approver(ForwardingApprover(Arc::clone(&questions)))
            .with_inquiry_handler(questions)
            .with_listener(Arc::clone(&signals) as _);
        let call =
            call_of(permit, received).bound_to(&*permit.binding).cancelled_by(cancel.clone());
        let mut running = std::pin::pin!(self.pipeline.call(&session, call));
        let mut beats = tokio::time::interval(self.config.heartbeat);
        let mut expired = std::pin::pin!(limit.wait_until_over());
        loop {
            let body = tokio::select! {
                biased;
                Some(body) = messages.recv() => body,
                outcome = &mut running => {
                    while let Ok(body) = messages.try_recv() {
                        self.report(request, seq, body).await;
                    }
                    if let Some(lost) = signals.take_lost() {
                        self.report(request, seq, lost).await;
                    }
                    return outcome;
                }
                _ = beats.tick() => RunBody::Alive,
                () = &mut expired, if !cancel.is_cancelled() => {
                    cancel.cancel();
                    continue;
                }
            };
            self.report(request, seq, body).await;
        }
    }

    /// Sends a message about a running call.
    async fn report(&self, request: &Request, seq: &mut u64, body: RunBody) {
        let Some(reply) = request.message.reply.clone() else { return };
        let message = RunMessage { seq: *seq, body };
        *seq += 1;
        // What cannot be sent is missed by the host, which sees the gap in the numbers.
        if let Ok((headers, bytes)) = self.payloads.encode(HeaderMap::new(), &message).await {
            let sending = self.payloads.client.publish_with_headers(reply, headers, bytes);
            let _ = timeout(SEND_TIMEOUT, sending).await;
        }
    }

    /// Answers a request for the last time.
    async fn respond(&self, request: &Request, answer: &impl Serialize) {
        if let Ok((headers, bytes)) = self.encode_answer(answer).await {
            self.send_answer(request, headers, bytes).await;
        }
    }

    async fn send_answer(&self, request: &Request, headers: HeaderMap, bytes: Bytes) {
        // The host that asked is gone, or hears from its deadline.
        let _ = timeout(SEND_TIMEOUT, request.respond_with_headers(Ok(bytes), headers)).await;
    }

    /// Encodes an answer, or the error of one that cannot be sent.
    async fn encode_answer(
        &self,
        answer: &impl Serialize,
    ) -> Result<(HeaderMap, Bytes), RemoteError> {
        match self.payloads.encode(HeaderMap::new(), answer).await {
            Ok(encoded) => Ok(encoded),
            Err(error) => {
                let error = ToolError::failed(format_args!("the answer cannot be sent: {error}"))
                    .hint("the call has ended; ask for less at once");
                let body = RunBody::Finished(Box::new(Err(error).into()));
                let message = RunMessage { seq: u64::MAX, body };
                self.payloads.encode(HeaderMap::new(), &message).await
            }
        }
    }

    /// Checks a request to drain the worker.
    fn accept_drain(&self, request: &Request) -> Result<(), WorkerRefusal> {
        let text = str::from_utf8(&request.message.payload).map_err(|_| WorkerRefusal::Message)?;
        let permit = self.verify(text, PermitPurpose::Drain)?;
        if permit.worker != self.id {
            return Err(WorkerRefusal::Permit);
        }
        self.nonces.use_once(&permit.nonce, expiry(&permit), now_ms())
    }

    /// Checks the permit of a request about a call, but for its nonce and the call.
    fn check_permit(
        &self,
        request: &Request,
        purpose: PermitPurpose,
    ) -> Result<Permit, WorkerRefusal> {
        let text = permit_header(request.message.headers.as_ref()).ok_or(WorkerRefusal::Permit)?;
        let permit = self.verify(text, purpose)?;
        match self.lock_offer().has_tool(&permit.tool, &permit.definition) {
            true => Ok(permit),
            false => Err(WorkerRefusal::Definition),
        }
    }

    pub(super) fn verify(
        &self,
        text: &str,
        purpose: PermitPurpose,
    ) -> Result<Permit, WorkerRefusal> {
        let permit = self.config.verifier.verify(text).map_err(|_| WorkerRefusal::Permit)?;
        if permit.purpose != purpose || permit.namespace != self.config.namespace.as_str() {
            return Err(WorkerRefusal::Permit);
        }
        if permit.is_expired() {
            return Err(WorkerRefusal::Expired);
        }
        Ok(permit)
    }

    /// Cancels the call whose nonce ends the subject, and refuses its permit from now on.
    pub(super) fn cancel_call(&self, subject: &str) {
        let nonce = subject.rsplit('.').next().unwrap_or_default();
        let mut running = self.lock_running();
        match running.calls.get(nonce) {
            Some(cancel) => cancel.cancel(),
            None => running.cancelled.insert(nonce),
        }
    }

    /// Cancels every running call.
    pub(super) fn cancel_all(&self) {
        self.lock_running().calls.values().for_each(CancellationToken::cancel);
    }

    /// Returns the load of the worker, for its statistics.
    pub(super) fn load(&self) -> Value {
        let count = |it: &std::sync::atomic::AtomicU64| it.load(Ordering::Relaxed);
        json!({
            "running": self.config.max_calls - self.slots.available_permits(),
            "limit": self.config.max_calls,
            "failed": count(&self.counters.failed),
            "busy": count(&self.counters.busy),
            "refused": count(&self.counters.refused),
        })
    }

    fn count(&self, refusal: WorkerRefusal) {
        let counter = match refusal {
            WorkerRefusal::Busy => &self.counters.busy,
            _ => &self.counters.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(?refusal, "a request was refused");
    }

    pub(super) fn lock_offer(&self) -> MutexGuard<'_, Arc<ToolOffer>> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_running(&self) -> MutexGuard<'_, RunTable> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the call of a permit.
fn call_of(permit: &Permit, received: CallRequest) -> Call<'static> {
    let arguments = RawArgs::new(received.arguments).lenient(received.lenient);
    Call::new(permit.tool.clone(), arguments).id(&permit.call)
}

/// Returns when the nonce of a permit can be forgotten.
fn expiry(permit: &Permit) -> u64 {
    // More than the clocks may differ.
    const MARGIN_MS: u64 = 10_000;
    permit.expires_ms.saturating_add(MARGIN_MS)
}

/// Sends what a running tool reports to the task that runs the call. What does not fit is counted, and
/// the count is sent in its place.
pub(super) struct SignalForwarder {
    messages: mpsc::Sender<RunBody>,
    lost: Mutex<u64>,
}

impl SignalForwarder {
    fn new(messages: mpsc::Sender<RunBody>) -> Self {
        Self { messages, lost: Mutex::new(0) }
    }

    fn send(&self, body: RunBody) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if *lost > 0 && self.messages.try_send(lost_messages(*lost)).is_ok() {
            *lost = 0;
        }
        if *lost > 0 || self.messages.try_send(body).is_err() {
            *lost += 1;
        }
    }

    /// Returns the report about messages that were lost since the last one that was sent.
    fn take_lost(&self) -> Option<RunBody> {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        (*lost > 0).then(|| lost_messages(std::mem::take(&mut *lost)))
    }
}

fn lost_messages(count: u64) -> RunBody {
    RunBody::Signal(Signal::Lost { count })
}

impl SessionListener for SignalForwarder {
    fn on_signal(&self, _: &ToolName, signal: &Signal) {
        self.send(RunBody::Signal(signal.clone()));
    }

    fn on_warning(&self, _: &ToolName, message: &str) {
        self.send(RunBody::Warned(message.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_messages_are_counted_in_their_place() {
        let (sender, mut messages) = mpsc::channel(3);
        let forwarder = SignalForwarder::new(sender);
        let report = |done| {
            let signal = Signal::Progress { done, total: None, message: String::new() };
            forwarder.send(RunBody::Signal(signal));
        };
        (1..=5).for_each(report);
        let mut received = Vec::new();
        let mut receive = |messages: &mut mpsc::Receiver<RunBody>| match messages.try_recv() {
            Ok(RunBody::Signal(Signal::Progress { done, .. })) => received.push(done as i64),
            Ok(RunBody::Signal(Signal::Lost { count })) => received.push(-(count as i64)),
            _ => received.push(0),
        };
        (0..2).for_each(|_| receive(&mut messages));
        (6..=7).for_each(report);
        (0..3).for_each(|_| receive(&mut messages));
        assert_eq!(received, [1, 2, 3, -2, 6]);
        assert!(matches!(forwarder.take_lost(), Some(RunBody::Signal(Signal::Lost { count: 1 }))));
        assert!(forwarder.take_lost().is_none());
    }
}
