//! The first message of a call: a worker says what the call would do.
//!
//! **Invariant:** preparing has no effect, so it may be repeated with another worker.

use std::time::Duration;

use async_nats::client::Request;
use async_nats::{Message, RequestErrorKind};
use tokio::time::{Instant, timeout};
use tool_sdk_core::{CallFacts, Context, ToolError};

use super::known_workers::is_token;
use super::tool::{CheckedArguments, RemoteToolState};
use crate::error::RemoteError;
use crate::permit::{Permit, PermitPurpose, random_id};
use crate::protocol::{
    PREPARE, PrepareAnswer, WorkerRefusal, arguments_digest, request_headers, tool_subject,
    worker_subject,
};

/// The pause before busy workers are asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// In how many parts the time to prepare is divided: a worker that is silent for one is left.
const ATTEMPTS: u32 = 4;

/// A call, as the worker describes it that would run it.
pub(super) struct DescribedCall {
    /// The id of the worker.
    pub(super) worker: String,
    pub(super) facts: CallFacts,
}

/// Why a worker did not prepare a call.
enum NotPrepared {
    /// The call cannot run anywhere.
    Failed(ToolError),
    Refused(WorkerRefusal),
    /// No worker listens.
    Unknown,
    /// The worker did not answer in time.
    Silent,
    Connection(RemoteError),
}

impl RemoteToolState {
    /// Lets any worker prepare the call.
    pub(super) async fn prepare_call(
        &self,
        arguments: &CheckedArguments,
        cx: &Context,
    ) -> Result<DescribedCall, ToolError> {
        self.prepare_except(None, arguments, cx).await
    }

    /// Lets a worker other than `except` prepare the call. Workers that are busy or silent are left
    /// for others until the time to prepare is over.
    pub(super) async fn prepare_except(
        &self,
        except: Option<&str>,
        arguments: &CheckedArguments,
        cx: &Context,
    ) -> Result<DescribedCall, ToolError> {
        let workers = &self.workers;
        let limit = workers.config.prepare_timeout;
        let end = Instant::now() + limit;
        let mut reason = "no worker offers this tool now".to_owned();
        // The server chooses among workers that all answer; those that do not are not asked.
        if except.is_none() && workers.lock_known().all_answer() {
            let subject = tool_subject(&workers.config.namespace, &self.remote_name, &self.hash);
            match self.request_prepare(subject, "", limit / ATTEMPTS, arguments, cx).await {
                Ok(prepared) => return Ok(prepared),
                Err(not_prepared) => reason = self.note_failure(not_prepared)?,
            }
        }
        loop {
            let mut others = workers.lock_known().workers_with(&self.remote_name, &self.hash);
            others.retain(|worker| Some(worker.as_str()) != except);
            // Hosts begin with different workers.
            others.sort_by_cached_key(|_| random_id());
            if others.is_empty() {
                return Err(self.unavailable(&reason));
            }
            for worker in others {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(self.unavailable(&reason));
                }
                let subject = worker_subject(&workers.config.namespace, &worker, PREPARE);
                let patience = left.min(limit / ATTEMPTS);
                match self.request_prepare(subject, &worker, patience, arguments, cx).await {
                    Ok(prepared) => return Ok(prepared),
                    Err(not_prepared) => reason = self.note_failure(not_prepared)?,
                }
            }
            if Instant::now() + BUSY_PAUSE >= end {
                return Err(self.unavailable(&reason));
            }
            // Nothing tells when a worker has a free place.
            tokio::time::sleep(BUSY_PAUSE).await;
        }
    }

    /// Returns why a worker did not prepare the call, or the error when no other one could.
    fn note_failure(&self, not_prepared: NotPrepared) -> Result<String, ToolError> {
        match not_prepared {
            NotPrepared::Failed(error) => Err(error),
            NotPrepared::Refused(WorkerRefusal::Busy) => Ok("every worker is busy".to_owned()),
            NotPrepared::Refused(refusal) => {
                self.workers.look_now.notify_one();
                Ok(format!("a worker {}", refusal.reason()))
            }
            NotPrepared::Unknown => {
                self.workers.look_now.notify_one();
                Ok("no worker offers this tool now".to_owned())
            }
            NotPrepared::Silent => {
                self.workers.look_now.notify_one();
                Ok("a worker did not answer in time".to_owned())
            }
            NotPrepared::Connection(error) => Ok(error.to_string()),
        }
    }

    async fn request_prepare(
        &self,
        subject: String,
        worker: &str,
        patience: Duration,
        arguments: &CheckedArguments,
        cx: &Context,
    ) -> Result<DescribedCall, NotPrepared> {
        let workers = &self.workers;
        let binding = arguments_digest(&arguments.text);
        let permit = self.permit(PermitPurpose::Prepare, worker, binding, patience, cx);
        let answer = timeout(patience, async {
            let headers = request_headers(&workers.config.signer.sign(&permit)?, cx);
            let (headers, bytes) =
                workers.payloads.encode(headers, &arguments.to_request(cx)).await?;
            let request = Request::new().headers(headers).payload(bytes).timeout(None);
            Ok::<_, RemoteError>(workers.payloads.client.send_request(subject, request).await)
        })
        .await
        .map_err(|_| NotPrepared::Silent)?
        .map_err(NotPrepared::Connection)?;
        let message: Message = answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => NotPrepared::Unknown,
            RequestErrorKind::TimedOut => NotPrepared::Silent,
            _ => NotPrepared::Connection(RemoteError::request(error)),
        })?;
        match workers.payloads.read(&message).await.map_err(NotPrepared::Connection)? {
            // The id becomes a part of the subject to which the permit to run is sent.
            PrepareAnswer::Prepared { worker: answering, .. }
                if !may_answer(worker, &answering) =>
            {
                let error = "a worker answered under an id that is not its own";
                Err(NotPrepared::Connection(RemoteError::Request(error.to_owned())))
            }
            PrepareAnswer::Prepared { worker, facts } => {
                let prefix = workers.config.namespace.prefix();
                let facts = facts.with_permission_prefix(&prefix, &self.remote_permission);
                Ok(DescribedCall { worker, facts })
            }
            PrepareAnswer::Failed(failure) => Err(NotPrepared::Failed(failure.into())),
            PrepareAnswer::Refused(refusal) => Err(NotPrepared::Refused(refusal)),
        }
    }

    /// Returns a permit about a call of this tool.
    pub(super) fn permit(
        &self,
        purpose: PermitPurpose,
        worker: &str,
        binding: String,
        lifetime: Duration,
        cx: &Context,
    ) -> Permit {
        let session = cx.session();
        let mut permit = Permit::new(purpose, self.workers.config.namespace.as_str(), lifetime);
        worker.clone_into(&mut permit.worker);
        permit.user = session.user().map(str::to_owned);
        permit.agent = session.agent().map(str::to_owned);
        session.id().clone_into(&mut permit.session);
        permit.call = cx.call_id().to_string();
        permit.tool.clone_from(&self.remote_name);
        permit.definition.clone_from(&self.hash);
        permit.binding = binding;
        permit
    }

    /// Returns the error of a call that did not run.
    pub(super) fn unavailable(&self, reason: &str) -> ToolError {
        let namespace = &self.workers.config.namespace;
        ToolError::unavailable(format_args!(
            "no worker of `{namespace}` can run `{}`: {reason}",
            self.remote_name
        ))
        .hint("it did not run; go on without it, or try again later")
    }
}

/// Whether a worker with the id `answering` may have prepared a call that was sent to `asked`, or to any
/// worker if that is empty.
fn may_answer(asked: &str, answering: &str) -> bool {
    is_token(answering) && (asked.is_empty() || asked == answering)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_one_worker() {
        let id = random_id();
        assert!(may_answer("", &id) && may_answer(&id, &id) && !may_answer("other", &id));
        for bad in ["", "*", ">", "a.b", "a.run", "a b", "a\r\n", "ä", &"a".repeat(65)] {
            assert!(!may_answer("", bad) && !may_answer(bad, bad), "{bad}");
        }
    }
}
