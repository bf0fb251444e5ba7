//! The asks of one pipeline that wait for an answer.
//!
//! Asks for the same call of the same session are one. An answer counts once; it is made
//! to count (approvals stored, siblings looked at again) before anybody hears of it. An ask
//! that nobody waits for any more is gone, and its approver is told to stop.
//!
//! **Invariant:** whatever goes wrong here is a no.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{ApprovalId, ApprovalRequest, ApprovalResponse, Approver};
use crate::context::Session;

/// How an ask ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalOutcome {
    /// Somebody answered it.
    Response(ApprovalResponse),
    /// No person said no: a hook did, or failed to say anything, or who was asked is gone.
    Refused(Arc<str>),
    /// A hook made another call of it.
    Superseded,
    /// Something else that the session asked was rejected.
    RejectedWithBatch,
    /// The answer reaches further than what was offered.
    NotOffered,
    /// Nobody answered in time.
    Expired,
    /// The host closed its tools, or whoever was asked is gone.
    Cancelled,
}

impl ApprovalOutcome {
    /// The word for it in events.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Response(reply) => reply.as_str(),
            Self::Refused(_) => "refused",
            Self::Superseded => "changed",
            Self::RejectedWithBatch => "rejected_beside",
            Self::NotOffered => "not_offered",
            Self::Expired => "expired",
            Self::Cancelled => "aborted",
        }
    }

    /// Why the call does not run where this is no yes, in words for whoever made it.
    pub(crate) fn denial_reason(&self) -> Cow<'static, str> {
        let reason = match self {
            Self::Response(ApprovalResponse::RejectWith { feedback }) => {
                return format!("the user rejected it and says: {feedback}").into();
            }
            Self::Refused(words) => return words.to_string().into(),
            Self::Response(_) => "the user rejected it",
            Self::Superseded => "a hook made another call of it",
            Self::RejectedWithBatch => {
                "the user rejected another call that was asked at the same time"
            }
            Self::NotOffered => "the answer was none of those that were offered",
            Self::Expired => "nobody answered in time",
            Self::Cancelled => "whoever was asked is gone",
        };
        reason.into()
    }
}

/// Why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalResponseError {
    /// There is no ask with this id.
    #[error("there is no ask `{0}`")]
    UnknownRequest(ApprovalId),
    /// The ask was answered before, or has ended.
    #[error("the ask `{0}` is settled already")]
    AlreadyEnded(ApprovalId),
    /// The answer names the fingerprint of another call than the one that was shown.
    #[error("the answer to the ask `{0}` is about another call; look at the ask again")]
    FingerprintMismatch(ApprovalId),
    /// The answer reaches further than what was offered.
    #[error("`{reply}` is not offered for the ask `{ask}`")]
    NotOffered {
        /// The ask.
        ask: ApprovalId,
        /// The answer.
        reply: &'static str,
    },
}

/// The asks that wait for an answer.
#[derive(Default)]
pub(crate) struct PendingApprovals {
    state: Mutex<State>,
    /// Changes whenever what was asked could be allowed by now.
    policy_changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    requests: Vec<PendingEntry>,
    /// The last ones that were settled, so that a second answer is told from a wrong one.
    recently_ended: VecDeque<ApprovalId>,
    is_closed: bool,
}

struct PendingEntry {
    request: Arc<ApprovalRequest>,
    session: Session,
    approver: Arc<dyn Approver>,
    outcome: watch::Sender<Option<ApprovalOutcome>>,
    /// How many calls wait for it.
    waiters: usize,
    approver_task: Option<AbortHandle>,
    /// Whether an approval beyond this call is offered.
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
        // What stays keeps its order.
        Some(self.requests.remove(at))
    }
}

impl PendingApprovals {
    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The asks that wait for an answer, the oldest first.
    pub(crate) fn open_requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.lock_state().requests.iter().map(|entry| Arc::clone(&entry.request)).collect()
    }

    /// Changes whenever what waits could be allowed by now.
    pub(crate) fn policy_changes(&self) -> watch::Receiver<u64> {
        self.policy_changes.subscribe()
    }

    /// Lets everything that waits be looked at again.
    pub(crate) fn notify_policy_change(&self) {
        self.policy_changes.send_modify(|epoch| *epoch += 1);
    }

    /// Puts up an ask, or joins the one for the same call; `asked`, who may stand in front of the
    /// approver, is asked, and `answer` makes what is said count.
    pub(crate) fn open_request(
        self: &Arc<Self>,
        ask: ApprovalRequest,
        session: &Session,
        approver: &Arc<dyn Approver>,
        asked: Arc<dyn Approver>,
        answer: impl FnOnce(Arc<ApprovalRequest>, Option<ApprovalResponse>) -> ResponseApplication
        + Send
        + 'static,
    ) -> PendingAnswer {
        let offers_always = ask.offers_always();
        let mut state = self.lock_state();
        let same = |entry: &&mut PendingEntry| {
            entry.session.is_same_session(session)
                && Arc::ptr_eq(&entry.approver, approver)
                && entry.request.fingerprint == ask.fingerprint
                && (&entry.request.reason, &entry.request.original) == (&ask.reason, &ask.original)
        };
        if let Some(entry) = state.requests.iter_mut().find(same) {
            entry.waiters += 1;
            return self.add_waiter(entry, true);
        }
        let verdict = watch::Sender::new(state.is_closed.then_some(ApprovalOutcome::Cancelled));
        let mut entry = PendingEntry {
            request: Arc::new(ask),
            session: session.clone(),
            approver: Arc::clone(approver),
            outcome: verdict,
            waiters: 1,
            approver_task: None,
            offers_always,
        };
        let shown = Arc::clone(&entry.request);
        let driver = async move {
            let ask = Arc::clone(&shown);
            // Made and polled inside, so that a panic of either is an answer: no.
            let answered =
                AssertUnwindSafe(async move { asked.request_approval(ask).await }).catch_unwind();
            match answered.await {
                // Somebody else answers, by the id.
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

    /// Takes an ask off the desk, so that no other answer counts.
    ///
    /// `shown` is the fingerprint of what the answer is about.
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

    /// Settles everything else that the session asks.
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

    /// Settles an ask in another way than by an answer.
    pub(crate) fn finish_request(&self, id: &ApprovalId, settled: ApprovalOutcome) {
        let taken = self.lock_state().remove_request(id);
        if let Some(entry) = taken {
            ClaimedApproval(entry).finish(settled);
        }
    }

    /// Settles everything, and whatever is asked later.
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

/// What makes an answer count.
pub(crate) type ResponseApplication = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// An ask that is off the desk and waits to be settled; dropped, it is gone.
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
    /// Whether somebody was asked already.
    is_joined: bool,
}

impl PendingAnswer {
    /// Whether the ask is one with another call's.
    pub(crate) const fn is_joined(&self) -> bool {
        self.is_joined
    }

    pub(crate) fn request(&self) -> &Arc<ApprovalRequest> {
        &self.request
    }

    /// Waits until the ask is settled.
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
