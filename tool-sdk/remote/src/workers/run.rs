//! The second message of a call: the worker that prepared it runs it, and reports until its end.
//!
//! **Invariant:** a call that may have run is repeated only if its tool reads or is idempotent, and
//! then once.

use std::time::Duration;

use async_nats::{Client, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};
use tool_sdk_core::{Context, Output, RiskClass, Signal, ToolError};

use super::prepare::DescribedCall;
use super::questions::QuestionHandler;
use super::replies::ReplyInbox;
use super::tool::{CheckedArguments, RemoteToolState};
use crate::permit::PermitPurpose;
use crate::protocol::{
    CANCEL, RUN, RunBody, RunMessage, WorkerRefusal, request_headers, worker_subject,
};

/// How many workers are asked to run a call that certainly did not run yet.
const MAX_WORKERS: usize = 64;

/// How long a call without a time limit may run.
const LONGEST: Duration = Duration::from_hours(24);

/// How an attempt to run a call ended.
enum RunAttempt {
    Ended(Result<Output, ToolError>),
    /// The call did not run, because the worker runs as many as it may.
    Busy(String),
    /// The call did not run.
    NotRun(String),
    /// The worker was lost: the call may have run.
    Lost(String),
}

impl RemoteToolState {
    /// Runs the call that `prepared` describes.
    pub(super) async fn run_call(
        &self,
        arguments: &CheckedArguments,
        mut prepared: DescribedCall,
        cx: &Context,
    ) -> Result<Output, ToolError> {
        let mut may_have_run = false;
        for _ in 0..MAX_WORKERS {
            let (reason, is_left) = match self.run_once(arguments, &prepared, cx).await {
                RunAttempt::Ended(result) => {
                    return result.map(|output| output.metadata("worker", prepared.worker));
                }
                RunAttempt::Busy(reason) => (reason, false),
                RunAttempt::NotRun(reason) => (reason, true),
                RunAttempt::Lost(reason) => {
                    self.workers.look_now.notify_one();
                    if may_have_run || !self.is_repeatable() {
                        return Err(self.lost(&reason));
                    }
                    may_have_run = true;
                    cx.progress(0, None, format!("{reason}; the call is made once more elsewhere"));
                    (reason, true)
                }
            };
            let other =
                self.prepare_except(is_left.then_some(&*prepared.worker), arguments, cx).await;
            let other = match other {
                Ok(other) => other,
                Err(error) if may_have_run => {
                    return Err(self.lost(&format!("{reason}; {}", error.message())));
                }
                Err(error) => return Err(error),
            };
            // What was decided and approved is the call that the first worker described.
            if other.facts.fingerprint != prepared.facts.fingerprint {
                let why = format!("{reason}, and the call would do something else elsewhere");
                return Err(if may_have_run { self.lost(&why) } else { self.unavailable(&why) });
            }
            prepared = other;
        }
        Err(self.unavailable("every worker is busy"))
    }

    /// Whether a call can be repeated without a further effect.
    fn is_repeatable(&self) -> bool {
        let risk = self.definition.risk;
        risk.class == RiskClass::Read || risk.idempotent
    }

    async fn run_once(
        &self,
        arguments: &CheckedArguments,
        prepared: &DescribedCall,
        cx: &Context,
    ) -> RunAttempt {
        let workers = &self.workers;
        let (client, namespace) = (&workers.payloads.client, &workers.config.namespace);
        let worker = &prepared.worker;
        let binding = prepared.facts.fingerprint.to_string();
        let permit = self.permit(PermitPurpose::Run, worker, binding, time_left(cx), cx);
        let started = async {
            let inbox = workers.replies.get_or_try_init(|| ReplyInbox::open(client)).await?;
            let signed = workers.config.signer.sign(&permit).map_err(|it| it.to_string())?;
            let headers = request_headers(&signed, cx);
            let encoded = workers.payloads.encode(headers, &arguments.to_request(cx)).await;
            let (headers, bytes) = encoded.map_err(|it| it.to_string())?;
            let replies = inbox.receive_replies();
            let (subject, reply) =
                (worker_subject(namespace, worker, RUN), replies.subject.clone());
            client
                .publish_with_reply_and_headers(subject, reply, headers, bytes)
                .await
                .map_err(|it| it.to_string())?;
            Ok::<_, String>(replies)
        };
        let mut replies = match started.await {
            Ok(replies) => replies,
            Err(reason) => return RunAttempt::NotRun(reason),
        };
        let mut cancel = CancelOnDrop {
            client,
            subject: Some(worker_subject(namespace, worker, &format!("{CANCEL}.{}", permit.nonce))),
        };
        let questions = QuestionHandler::new(self, worker, cx);
        let mut answering = FuturesUnordered::new();
        let (mut expected, mut heard) = (0, Instant::now());
        loop {
            let silence = workers.config.lost_after;
            let received = tokio::select! {
                biased;
                received = timeout_at(heard + silence, replies.messages.recv()) => received,
                Some(()) = answering.next() => continue,
            };
            heard = Instant::now();
            let message = match received {
                Ok(Some(message)) => message,
                // The permit is void from now on, should the worker come back.
                Ok(None) | Err(_) => {
                    return RunAttempt::Lost(format!(
                        "the worker `{worker}` said nothing for {silence:?}"
                    ));
                }
            };
            if message.status == Some(StatusCode::NO_RESPONDERS) {
                cancel.disarm();
                return RunAttempt::NotRun(format!("the worker `{worker}` is gone"));
            }
            let RunMessage { seq, body } = match workers.payloads.read(&message).await {
                Ok(received) => received,
                Err(error) => {
                    tracing::warn!(%error, "a message of a worker cannot be read");
                    continue;
                }
            };
            match body {
                RunBody::Refused(WorkerRefusal::Replayed) if expected == 0 => {
                    let why = WorkerRefusal::Replayed.reason();
                    return RunAttempt::Lost(format!("the worker `{worker}` {why}"));
                }
                RunBody::Refused(WorkerRefusal::Busy) if expected == 0 => {
                    cancel.disarm();
                    return RunAttempt::Busy("every worker is busy".to_owned());
                }
                // Large arguments take a while to read, and heartbeats come meanwhile.
                RunBody::Refused(refusal) if expected == 0 || refusal == WorkerRefusal::Message => {
                    cancel.disarm();
                    return RunAttempt::NotRun(format!(
                        "the worker `{worker}` {}",
                        refusal.reason()
                    ));
                }
                // That of a second message with the same permit.
                RunBody::Refused(_) => {}
                RunBody::Finished(result) => {
                    cancel.disarm();
                    return RunAttempt::Ended((*result).into());
                }
                // A message that came twice.
                _ if seq < expected => {}
                body => {
                    if seq > expected {
                        cx.report_lost(seq - expected);
                    }
                    expected = seq + 1;
                    match body {
                        RunBody::Asked { id, question } => {
                            answering.push(questions.handle_question(id, question));
                        }
                        body => forward(body, cx),
                    }
                }
            }
        }
    }

    /// Returns the error of a call that may have run.
    fn lost(&self, reason: &str) -> ToolError {
        ToolError::unavailable(format_args!("`{}` may have run: {reason}", self.remote_name))
            .hint("check its effect before you call it again")
    }
}

/// Returns the time until the call must have ended.
fn time_left(cx: &Context) -> Duration {
    cx.deadline().map_or(LONGEST, |end| end.saturating_duration_since(Instant::now()).min(LONGEST))
}

/// Passes on what the running tool reports.
fn forward(body: RunBody, cx: &Context) {
    match body {
        RunBody::Signal(Signal::Progress { done, total, message }) => {
            cx.progress(done, total, message);
        }
        RunBody::Signal(Signal::Metadata { key, value }) => cx.set_metadata(key, value),
        RunBody::Signal(Signal::Emitted { kind, data }) => cx.emit(kind, data),
        RunBody::Signal(Signal::Output { text }) => cx.emit_output(text),
        RunBody::Signal(Signal::Lost { count }) => cx.report_lost(count),
        RunBody::Warned(message) => cx.emit("worker_warning", message),
        _ => {}
    }
}

/// Cancels the call in the worker when the host no longer waits for it.
struct CancelOnDrop<'a> {
    client: &'a Client,
    subject: Option<String>,
}

impl CancelOnDrop<'_> {
    fn disarm(&mut self) {
        self.subject = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let (Some(subject), Ok(runtime)) =
            (self.subject.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let client = self.client.clone();
        runtime.spawn(async move { client.publish(subject, Bytes::new()).await });
    }
}
