//! The open approval requests of one pipeline.
//!
//! Requests for the same call of the same session are merged. Only the first answer counts, and it
//! is applied (grants stored, other requests evaluated again) before any waiting call sees it. When
//! no call waits for a request any more, the request is removed and its approver is cancelled.
//!
//! **Invariant:** an error in this module is a denial.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use serde_json::Value;

use super::{ApprovalId, ApprovalRequest, ApprovalResponse, Approver};
use crate::context::Session;
use crate::tool::InvalidArgs;

/// How an approval request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalOutcome {
    /// The user answered it.
    Response(ApprovalResponse),
    /// A hook denied the call or failed, or the approval prompt was closed.
    Refused(Arc<str>),
    /// A hook rewrote the call.
    Superseded,
    /// Another request of the session was rejected.
    RejectedWithBatch,
    /// The answer reaches further than was offered.
    NotOffered,
    /// There was no answer in time.
    Expired,
    /// The host closed the pipeline, or the approval prompt was closed.
    Cancelled,
}

impl ApprovalOutcome {
    /// Returns the name of the outcome in events.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Response(reply) => reply.as_str(),
            Self::Refused(_) => "refused",
            Self::Superseded => "superseded",
            Self::RejectedWithBatch => "rejected_with_batch",
            Self::NotOffered => "not_offered",
            Self::Expired => "expired",
            Self::Cancelled => "aborted",
        }
    }

    /// Returns why the call does not run when this is not an approval, as a sentence for the model.
    pub(crate) fn denial_reason(&self) -> Cow<'static, str> {
        let reason = match self {
            // A user who rejects one call need not say why.
            Self::Response(ApprovalResponse::RejectWith { feedback })
                if !feedback.trim().is_empty() =>
            {
                return format!("the user rejected it and says: {feedback}").into();
            }
            Self::Refused(words) => return words.to_string().into(),
            Self::Response(_) => "the user rejected it",
            Self::Superseded => "a hook rewrote the call",
            Self::RejectedWithBatch => {
                "the user rejected another call that was asked at the same time"
            }
            Self::NotOffered => "the answer was none of those that were offered",
            Self::Expired => "the approval request was not answered in time",
            Self::Cancelled => "the approval prompt was closed before it was answered",
        };
        reason.into()
    }
}

/// Why an answer was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalResponseError {
    /// There is no request with this id.
    #[error("there is no approval request `{0}`")]
    UnknownRequest(ApprovalId),
    /// The request was answered before, or has ended.
    #[error("the approval request `{0}` has already ended")]
    AlreadyEnded(ApprovalId),
    /// The answer names the fingerprint of another call than the one that was shown.
    #[error(
        "the answer to the approval request `{0}` is about another call; review the request again"
    )]
    FingerprintMismatch(ApprovalId),
    /// The answer reaches further than was offered.
    #[error("`{reply}` is not offered for the approval request `{ask}`")]
    NotOffered {
        /// The id of the request.
        ask: ApprovalId,
        /// The name of the answer.
        reply: &'static str,
    },
    /// The tool does not accept the edited arguments.
    #[error("the edited arguments for the approval request `{ask}` are invalid: {faults}")]
    InvalidArguments {
        /// The id of the request.
        ask: ApprovalId,
        /// What is wrong with them.
        #[source]
        faults: InvalidArgs,
    },
}

/// The table of open approval requests.
#[derive(Default)]
pub(crate) struct PendingApprovals {
    state: Mutex<State>,
    /// Changes whenever an open request could be allowed by now.
    policy_changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    requests: Vec<PendingEntry>,
    /// The requests that ended last, so that a second answer gets another error than a wrong id.
    recently_ended: VecDeque<ApprovalId>,
    is_closed: bool,
}

struct PendingEntry {
    request: Arc<ApprovalRequest>,
    session: Session,
    approver: Arc<dyn Approver>,
    outcome: watch::Sender<Option<ApprovalOutcome>>,
    /// How many calls wait for the request.
    waiters: usize,
    approver_task: Option<AbortHandle>,
    /// Whether a grant beyond this call is offered.
    offers_always: bool,
}

impl State {
    const MAX_REMEMBERED: usize = 256;

    fn remove_request(&mut self, id: &ApprovalId) -> Option<PendingEntry> {
        let at = self.requests.iter().position(|entry| entry.request.id == *id)?;
        self.recently_ended.push_back(id.clone());
        if self.recently_ended.len() > Self::MAX_REMEMBERED {
            self.recently_ended.pop_front();
        }
        // The remaining requests keep their order.
        Some(self.requests.remove(at))
    }
}

impl PendingApprovals {
    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the open requests, the oldest first.
    pub(crate) fn open_requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.lock_state().requests.iter().map(|entry| Arc::clone(&entry.request)).collect()
    }

    /// Returns the open requests of the sessions that satisfy `is_wanted`, the oldest first.
    pub(crate) fn open_requests_of(
        &self,
        is_wanted: impl Fn(&Session) -> bool,
    ) -> Vec<Arc<ApprovalRequest>> {
        let state = self.lock_state();
        let wanted = state.requests.iter().filter(|entry| is_wanted(&entry.session));
        wanted.map(|entry| Arc::clone(&entry.request)).collect()
    }

    /// Whether a request with this id has ended.
    pub(crate) fn was_ended(&self, id: &ApprovalId) -> bool {
        self.lock_state().recently_ended.contains(id)
    }

    /// Returns a receiver that changes whenever an open request could be allowed by now.
    pub(crate) fn policy_changes(&self) -> watch::Receiver<u64> {
        self.policy_changes.subscribe()
    }

    /// Makes every waiting call evaluate its permissions again.
    pub(crate) fn notify_policy_change(&self) {
        self.policy_changes.send_modify(|epoch| *epoch += 1);
    }

    /// Opens a request, or joins the open one for the same call.
    ///
    /// `wrapped_approver` is `approver`, possibly behind hooks, and is asked for the answer;
    /// `answer` applies the response.
    pub(crate) fn open_request(
        self: &Arc<Self>,
        request: ApprovalRequest,
        session: &Session,
        approver: &Arc<dyn Approver>,
        wrapped_approver: Arc<dyn Approver>,
        answer: impl FnOnce(Arc<ApprovalRequest>, Option<ApprovalResponse>) -> ResponseApplication
        + Send
        + 'static,
    ) -> PendingAnswer {
        let offers_always = request.offers_always();
        let mut state = self.lock_state();
        let same = |entry: &&mut PendingEntry| {
            entry.session.is_same_session(session)
                && Arc::ptr_eq(&entry.approver, approver)
                && entry.request.fingerprint == request.fingerprint
                && entry.request.reason == request.reason
                && entry.request.original == request.original
        };
        if let Some(entry) = state.requests.iter_mut().find(same) {
            entry.waiters += 1;
            return self.add_waiter(entry, true);
        }
        let outcome = watch::Sender::new(state.is_closed.then_some(ApprovalOutcome::Cancelled));
        let mut entry = PendingEntry {
            request: Arc::new(request),
            session: session.clone(),
            approver: Arc::clone(approver),
            outcome,
            waiters: 1,
            approver_task: None,
            offers_always,
        };
        let shown = Arc::clone(&entry.request);
        let driver = async move {
            let request = Arc::clone(&shown);
            // The future is created and polled inside, so that a panic of either is a denial.
            let answered =
                AssertUnwindSafe(async move { wrapped_approver.request_approval(request).await })
                    .catch_unwind();
            match answered.await {
                // The answer comes through `Pipeline::respond`, by the id.
                Ok(None) => {}
                Ok(reply) => answer(shown, reply).await,
                Err(_) => answer(shown, None).await,
            }
        };
        entry.approver_task = Some(tokio::spawn(driver).abort_handle());
        let waiting = self.add_waiter(&entry, false);
        state.requests.push(entry);
        waiting
    }

    fn add_waiter(self: &Arc<Self>, entry: &PendingEntry, joined: bool) -> PendingAnswer {
        PendingAnswer {
            pending: Arc::clone(self),
            request: Arc::clone(&entry.request),
            outcome: entry.outcome.subscribe(),
            is_joined: joined,
        }
    }

    /// Checks the edited arguments of an answer; the request stays open.
    pub(crate) fn check_edit(
        &self,
        id: &ApprovalId,
        shown: &str,
        arguments: &Value,
    ) -> Result<(), ApprovalResponseError> {
        let open = self.open_requests();
        // `claim` has the error of a request that is not open.
        let Some(request) = open.iter().find(|it| it.id == *id) else { return Ok(()) };
        if request.fingerprint != shown {
            return Err(ApprovalResponseError::FingerprintMismatch(id.clone()));
        }
        let Some(call) = request.internals.editable() else {
            return Err(ApprovalResponseError::NotOffered { ask: id.clone(), reply: "edited" });
        };
        let checked = call.edit(arguments).map(drop);
        checked
            .map_err(|faults| ApprovalResponseError::InvalidArguments { ask: id.clone(), faults })
    }

    /// Removes a request from the table, so that no other answer counts.
    ///
    /// `shown` is the fingerprint of the call that the answer is about.
    pub(crate) fn claim(
        &self,
        id: &ApprovalId,
        shown: &str,
        reply: &ApprovalResponse,
    ) -> Result<ClaimedApproval, ApprovalResponseError> {
        let mut state = self.lock_state();
        let Some(entry) = state.requests.iter().find(|entry| entry.request.id == *id) else {
            return Err(match state.recently_ended.contains(id) {
                true => ApprovalResponseError::AlreadyEnded(id.clone()),
                false => ApprovalResponseError::UnknownRequest(id.clone()),
            });
        };
        if entry.request.fingerprint != shown {
            return Err(ApprovalResponseError::FingerprintMismatch(id.clone()));
        }
        let reaches_far =
            matches!(reply, ApprovalResponse::Session { .. } | ApprovalResponse::Always { .. });
        if reaches_far && !entry.offers_always {
            return Err(ApprovalResponseError::NotOffered {
                ask: id.clone(),
                reply: reply.as_str(),
            });
        }
        let entry = state
            .remove_request(id)
            .ok_or_else(|| ApprovalResponseError::UnknownRequest(id.clone()))?;
        Ok(ClaimedApproval(entry))
    }

    /// Ends every other open request of the session.
    pub(crate) fn reject_session(&self, session: &Session) {
        let mut state = self.lock_state();
        let beside: Vec<ApprovalId> = state
            .requests
            .iter()
            .filter(|entry| entry.session.is_same_session(session))
            .map(|entry| entry.request.id.clone())
            .collect();
        for id in beside {
            if let Some(entry) = state.remove_request(&id) {
                ClaimedApproval(entry).finish(ApprovalOutcome::RejectedWithBatch);
            }
        }
    }

    /// Ends a request in another way than by an answer.
    pub(crate) fn finish_request(&self, id: &ApprovalId, settled: ApprovalOutcome) {
        let taken = self.lock_state().remove_request(id);
        if let Some(entry) = taken {
            ClaimedApproval(entry).finish(settled);
        }
    }

    /// Ends every open request, and every later one.
    pub(crate) fn close(&self) {
        let mut state = self.lock_state();
        state.is_closed = true;
        for entry in std::mem::take(&mut state.requests) {
            ClaimedApproval(entry).finish(ApprovalOutcome::Cancelled);
        }
    }
}

impl fmt::Debug for PendingApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingApprovals")
            .field("requests", &self.lock_state().requests.len())
            .finish()
    }
}

/// The future that applies an answer.
pub(crate) type ResponseApplication = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request that was removed from the table and is about to end; dropping it cancels it.
pub(crate) struct ClaimedApproval(PendingEntry);

impl ClaimedApproval {
    pub(crate) fn request(&self) -> &Arc<ApprovalRequest> {
        &self.0.request
    }

    pub(crate) fn session(&self) -> &Session {
        &self.0.session
    }

    pub(crate) fn finish(mut self, settled: ApprovalOutcome) {
        let settled = match (settled, self.request().internals.refusal()) {
            (ApprovalOutcome::Response(reply), Some(words)) if !reply.is_approval() => {
                ApprovalOutcome::Refused(words)
            }
            (settled, _) => settled,
        };
        self.0.outcome.send_replace(Some(settled));
        if let Some(driver) = self.0.approver_task.take() {
            driver.abort();
        }
    }
}

/// One call that waits for an answer.
pub(crate) struct PendingAnswer {
    pending: Arc<PendingApprovals>,
    request: Arc<ApprovalRequest>,
    outcome: watch::Receiver<Option<ApprovalOutcome>>,
    /// Whether the request was already open.
    is_joined: bool,
}

impl PendingAnswer {
    /// Whether this call shares the request of another call.
    pub(crate) const fn is_joined(&self) -> bool {
        self.is_joined
    }

    pub(crate) fn request(&self) -> &Arc<ApprovalRequest> {
        &self.request
    }

    /// Waits until the request has ended.
    pub(crate) async fn wait_for_outcome(&mut self) -> ApprovalOutcome {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(verdict) => verdict.clone().unwrap_or(ApprovalOutcome::Cancelled),
            Err(_) => ApprovalOutcome::Cancelled,
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let mut state = self.pending.lock_state();
        let Some(entry) =
            state.requests.iter_mut().find(|entry| entry.request.id == self.request.id)
        else {
            return;
        };
        entry.waiters -= 1;
        if entry.waiters == 0
            && let Some(entry) = state.remove_request(&self.request.id)
        {
            drop(state);
            ClaimedApproval(entry).finish(ApprovalOutcome::Cancelled);
        }
    }
}
