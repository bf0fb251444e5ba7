//! Prepares and runs the calls of hosts.
//!
//! **Invariant:** a permit is checked in full, and its nonce used, before anything runs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::header::HeaderMap;
use async_nats::service::Request;
use futures_util::future::{BoxFuture, ready};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::internal::SessionListener;
use tool_sdk_core::{
    ApprovalRequest, ApprovalResponse, Approver, Call, FailureRecord, Outcome, RawArgs, Signal,
    ToolError, ToolName,
};

use super::{EndpointKind, ToolOffer, WorkerState};
use crate::permit::{Permit, PermitPurpose, now_ms};
use crate::protocol::{
    CallRequest, PrepareAnswer, RunBody, RunMessage, WorkerRefusal, arguments_digest, with_trace,
};

/// How many messages of a running call may wait to be sent; further progress is dropped.
const MAX_WAITING: usize = 1024;

/// How much longer than its deadline a call may run: the host ends it at the deadline.
const DEADLINE_GRACE: Duration = Duration::from_millis(500);

/// How long the nonce of a cancelled permit is remembered.
const CANCELLED_NONCE: Duration = Duration::from_mins(10);

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
        let received: CallRequest =
            self.payloads.read(&request.message).await.map_err(|_| WorkerRefusal::Message)?;
        let permit = self.check_permit(&received.permit, PermitPurpose::Prepare)?;
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
        let described =
            tokio::time::timeout(permit.remaining(), self.pipeline.describe(&session, call)).await;
        Ok(match described.map_err(|_| WorkerRefusal::Expired)? {
            Ok(facts) => {
                PrepareAnswer::Prepared { worker: self.id.clone(), facts: Box::new(facts) }
            }
            Err(error) => PrepareAnswer::Failed(FailureRecord::from(&error)),
        })
    }

    /// Runs a call and reports on it until it has ended.
    async fn run(&self, request: &Request) {
        let (permit, received) = match self.accept_run(request).await {
            Ok(accepted) => accepted,
            Err(refusal) => {
                self.count(refusal);
                let body = RunBody::Refused(refusal);
                return self.respond(request, &RunMessage { seq: 0, body }).await;
            }
        };
        let Ok(_slot) = self.slots.try_acquire() else {
            self.count(WorkerRefusal::Busy);
            let body = RunBody::Refused(WorkerRefusal::Busy);
            return self.respond(request, &RunMessage { seq: 0, body }).await;
        };
        let Some(cancel) = self.register_run(&permit) else {
            self.count(WorkerRefusal::Replayed);
            let body = RunBody::Refused(WorkerRefusal::Replayed);
            return self.respond(request, &RunMessage { seq: 0, body }).await;
        };
        let (seq, outcome) = self.run_permitted(request, &permit, received, &cancel).await;
        self.lock_running().remove(&permit.nonce);
        if outcome.result.is_err() {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
        }
        let body = RunBody::Finished(Box::new(outcome.result.into()));
        self.respond(request, &RunMessage { seq, body }).await;
    }

    /// Uses the nonce of a permit; returns how the call is cancelled. `None` when the nonce was used,
    /// also by a cancellation that came first.
    fn register_run(&self, permit: &Permit) -> Option<CancellationToken> {
        let mut running = self.lock_running();
        if !self.nonces.use_once(&permit.nonce, expiry(permit), now_ms()) {
            return None;
        }
        let cancel = CancellationToken::new();
        running.insert(permit.nonce.clone(), cancel.clone());
        Some(cancel)
    }

    /// Runs the call of a permit in the worker's pipeline, whose rules still count. Returns the
    /// number of the next message.
    async fn run_permitted(
        &self,
        request: &Request,
        permit: &Permit,
        received: CallRequest,
        cancel: &CancellationToken,
    ) -> (u64, Outcome) {
        let (sender, mut signals) = mpsc::channel(MAX_WAITING);
        let session = self.sessions.session_for(permit);
        let session = with_trace(session, request.message.headers.as_ref())
            .with_approver(PermitApprover::new(permit))
            .with_listener(Arc::new(SignalForwarder(sender)));
        let call =
            call_of(permit, received).bound_to(&*permit.binding).cancelled_by(cancel.clone());
        let mut running = std::pin::pin!(self.pipeline.call(&session, call));
        let mut beats = tokio::time::interval(self.config.heartbeat);
        let limit = permit.remaining() + DEADLINE_GRACE;
        let mut expired = std::pin::pin!(tokio::time::sleep(limit));
        let mut seq = 0;
        loop {
            let body = tokio::select! {
                biased;
                Some(body) = signals.recv() => body,
                outcome = &mut running => {
                    while let Ok(body) = signals.try_recv() {
                        self.report(request, &mut seq, body).await;
                    }
                    return (seq, outcome);
                }
                _ = beats.tick() => RunBody::Alive,
                () = &mut expired, if !cancel.is_cancelled() => {
                    cancel.cancel();
                    continue;
                }
            };
            self.report(request, &mut seq, body).await;
        }
    }

    /// Sends a message about a running call.
    async fn report(&self, request: &Request, seq: &mut u64, body: RunBody) {
        let Some(reply) = request.message.reply.clone() else { return };
        let message = RunMessage { seq: *seq, body };
        *seq += 1;
        // What cannot be sent is missed by the host, which sees the gap in the numbers.
        if let Ok((headers, bytes)) = self.payloads.encode(HeaderMap::new(), &message).await {
            let client = &self.payloads.client;
            let _ = client.publish_with_headers(reply, headers, bytes).await;
        }
    }

    /// Answers a request for the last time.
    async fn respond(&self, request: &Request, answer: &impl Serialize) {
        let encoded = match self.payloads.encode(HeaderMap::new(), answer).await {
            Ok(encoded) => Ok(encoded),
            Err(error) => {
                let error = ToolError::failed(format_args!("the answer cannot be sent: {error}"))
                    .hint("the call has ended; ask for less at once");
                let body = RunBody::Finished(Box::new(Err(error).into()));
                let message = RunMessage { seq: u64::MAX, body };
                self.payloads.encode(HeaderMap::new(), &message).await
            }
        };
        if let Ok((headers, bytes)) = encoded {
            // The host that asked is gone, or hears from its deadline.
            let _ = request.respond_with_headers(Ok(bytes), headers).await;
        }
    }

    /// Checks a request to run a call.
    async fn accept_run(&self, request: &Request) -> Result<(Permit, CallRequest), WorkerRefusal> {
        let received: CallRequest =
            self.payloads.read(&request.message).await.map_err(|_| WorkerRefusal::Message)?;
        let permit = self.check_permit(&received.permit, PermitPurpose::Run)?;
        if permit.worker != self.id {
            return Err(WorkerRefusal::Permit);
        }
        Ok((permit, received))
    }

    /// Checks a request to drain the worker.
    fn accept_drain(&self, request: &Request) -> Result<(), WorkerRefusal> {
        let text = str::from_utf8(&request.message.payload).map_err(|_| WorkerRefusal::Message)?;
        let permit = self.verify(text, PermitPurpose::Drain)?;
        if permit.worker != self.id {
            return Err(WorkerRefusal::Permit);
        }
        match self.nonces.use_once(&permit.nonce, expiry(&permit), now_ms()) {
            true => Ok(()),
            false => Err(WorkerRefusal::Replayed),
        }
    }

    /// Checks a permit about a call, but for its nonce and the call.
    fn check_permit(&self, text: &str, purpose: PermitPurpose) -> Result<Permit, WorkerRefusal> {
        let permit = self.verify(text, purpose)?;
        match self.lock_offer().has_tool(&permit.tool, &permit.definition) {
            true => Ok(permit),
            false => Err(WorkerRefusal::Definition),
        }
    }

    fn verify(&self, text: &str, purpose: PermitPurpose) -> Result<Permit, WorkerRefusal> {
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
        match self.lock_running().get(nonce) {
            Some(cancel) => cancel.cancel(),
            None => {
                let kept = u64::try_from(CANCELLED_NONCE.as_millis()).unwrap_or(u64::MAX);
                self.nonces.use_once(nonce, now_ms().saturating_add(kept), now_ms());
            }
        }
    }

    /// Cancels every running call.
    pub(super) fn cancel_all(&self) {
        self.lock_running().values().for_each(CancellationToken::cancel);
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

    fn lock_running(&self) -> MutexGuard<'_, std::collections::HashMap<String, CancellationToken>> {
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
    const MARGIN_MS: u64 = 60_000;
    permit.expires_ms.saturating_add(MARGIN_MS)
}

/// Approves the one call that a permit names.
struct PermitApprover {
    fingerprint: String,
    user: Option<String>,
}

impl PermitApprover {
    fn new(permit: &Permit) -> Self {
        Self { fingerprint: permit.binding.clone(), user: permit.user.clone() }
    }
}

impl Approver for PermitApprover {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> BoxFuture<'static, Option<ApprovalResponse>> {
        let answer = match request.fingerprint == self.fingerprint {
            true => ApprovalResponse::Once,
            false => ApprovalResponse::Reject,
        };
        if let Some(user) = &self.user {
            request.set_responder(user.clone());
        }
        Box::pin(ready(Some(answer)))
    }
}

/// Sends what a running tool reports to the task that runs the call.
struct SignalForwarder(mpsc::Sender<RunBody>);

impl SessionListener for SignalForwarder {
    fn on_signal(&self, _: &ToolName, signal: &Signal) {
        let _ = self.0.try_send(RunBody::Signal(signal.clone()));
    }

    fn on_warning(&self, _: &ToolName, message: &str) {
        let _ = self.0.try_send(RunBody::Warned(message.to_owned()));
    }
}
