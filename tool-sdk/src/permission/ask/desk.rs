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

use super::{Approver, Ask, AskId, Reply};
use crate::context::Session;

/// How an ask ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Somebody answered it.
    Reply(Reply),
    /// No person said no: a hook did, or failed to say anything, or who was asked is gone.
    Refused(Arc<str>),
    /// A hook made another call of it.
    Changed,
    /// Something else that the session asked was rejected.
    RejectedBeside,
    /// The answer reaches further than what was offered.
    NotOffered,
    /// Nobody answered in time.
    Expired,
    /// The host closed its tools, or whoever was asked is gone.
    Gone,
}

impl Settled {
    /// The word for it in events.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Reply(reply) => reply.as_str(),
            Self::Refused(_) => "refused",
            Self::Changed => "changed",
            Self::RejectedBeside => "rejected_beside",
            Self::NotOffered => "not_offered",
            Self::Expired => "expired",
            Self::Gone => "aborted",
        }
    }

    /// Why the call does not run where this is no yes, in words for whoever made it.
    pub(crate) fn refusal(&self) -> Cow<'static, str> {
        let reason = match self {
            Self::Reply(Reply::RejectWith { feedback }) => {
                return format!("the user rejected it and says: {feedback}").into();
            }
            Self::Refused(words) => return words.to_string().into(),
            Self::Reply(_) => "the user rejected it",
            Self::Changed => "a hook made another call of it",
            Self::RejectedBeside => {
                "the user rejected another call that was asked at the same time"
            }
            Self::NotOffered => "the answer was none of those that were offered",
            Self::Expired => "nobody answered in time",
            Self::Gone => "whoever was asked is gone",
        };
        reason.into()
    }
}

/// Why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// There is no ask with this id.
    #[error("there is no ask `{0}`")]
    Unknown(AskId),
    /// The ask was answered before, or has ended.
    #[error("the ask `{0}` is settled already")]
    Settled(AskId),
    /// The answer names the fingerprint of another call than the one that was shown.
    #[error("the answer to the ask `{0}` is about another call; look at the ask again")]
    OtherCall(AskId),
    /// The answer reaches further than what was offered.
    #[error("`{reply}` is not offered for the ask `{ask}`")]
    NotOffered {
        /// The ask.
        ask: AskId,
        /// The answer.
        reply: &'static str,
    },
}

/// The asks that wait for an answer.
#[derive(Default)]
pub(crate) struct Desk {
    state: Mutex<State>,
    /// Changes whenever what was asked could be allowed by now.
    epoch: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Entry>,
    /// The last ones that were settled, so that a second answer is told from a wrong one.
    settled: VecDeque<AskId>,
    closed: bool,
}

struct Entry {
    ask: Arc<Ask>,
    session: Session,
    approver: Arc<dyn Approver>,
    verdict: watch::Sender<Option<Settled>>,
    /// How many calls wait for it.
    askers: usize,
    driver: Option<AbortHandle>,
    /// Whether an approval beyond this call is offered.
    offers_always: bool,
}

impl State {
    const REMEMBERED: usize = 256;

    fn take(&mut self, id: &AskId) -> Option<Entry> {
        let at = self.waiting.iter().position(|entry| entry.ask.id == *id)?;
        self.settled.push_back(id.clone());
        if self.settled.len() > Self::REMEMBERED {
            self.settled.pop_front();
        }
        // What stays keeps its order.
        Some(self.waiting.remove(at))
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The asks that wait for an answer, the oldest first.
    pub(crate) fn waiting(&self) -> Vec<Arc<Ask>> {
        self.state().waiting.iter().map(|entry| Arc::clone(&entry.ask)).collect()
    }

    /// Changes whenever what waits could be allowed by now.
    pub(crate) fn epoch(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    /// Lets everything that waits be looked at again.
    pub(crate) fn reconsider(&self) {
        self.epoch.send_modify(|epoch| *epoch += 1);
    }

    /// Puts up an ask, or joins the one for the same call; `asked`, who may stand in front of the
    /// approver, is asked, and `answer` makes what is said count.
    pub(crate) fn put_up(
        self: &Arc<Self>,
        ask: Ask,
        session: &Session,
        approver: &Arc<dyn Approver>,
        asked: Arc<dyn Approver>,
        answer: impl FnOnce(Arc<Ask>, Option<Reply>) -> Answering + Send + 'static,
    ) -> Waiting {
        let offers_always = ask.offers_always();
        let mut state = self.state();
        let same = |entry: &&mut Entry| {
            entry.session.is_same(session)
                && Arc::ptr_eq(&entry.approver, approver)
                && entry.ask.fingerprint == ask.fingerprint
                && (&entry.ask.reason, &entry.ask.original) == (&ask.reason, &ask.original)
        };
        if let Some(entry) = state.waiting.iter_mut().find(same) {
            entry.askers += 1;
            return self.waiting_for(entry, true);
        }
        let verdict = watch::Sender::new(state.closed.then_some(Settled::Gone));
        let mut entry = Entry {
            ask: Arc::new(ask),
            session: session.clone(),
            approver: Arc::clone(approver),
            verdict,
            askers: 1,
            driver: None,
            offers_always,
        };
        let shown = Arc::clone(&entry.ask);
        let driver = async move {
            let ask = Arc::clone(&shown);
            // Made and polled inside, so that a panic of either is an answer: no.
            let answered = AssertUnwindSafe(async move { asked.ask(ask).await }).catch_unwind();
            match answered.await {
                // Somebody else answers, by the id.
                Ok(None) => {}
                Ok(reply) => answer(shown, reply).await,
                Err(_) => answer(shown, None).await,
            }
        };
        entry.driver = Some(tokio::spawn(driver).abort_handle());
        let waiting = self.waiting_for(&entry, false);
        state.waiting.push(entry);
        waiting
    }

    fn waiting_for(self: &Arc<Self>, entry: &Entry, joined: bool) -> Waiting {
        Waiting {
            desk: Arc::clone(self),
            ask: Arc::clone(&entry.ask),
            verdict: entry.verdict.subscribe(),
            joined,
        }
    }

    /// Takes an ask off the desk, so that no other answer counts.
    ///
    /// `shown` is the fingerprint of what the answer is about.
    pub(crate) fn take(&self, id: &AskId, shown: &str, reply: &Reply) -> Result<Taken, ReplyError> {
        let mut state = self.state();
        let Some(entry) = state.waiting.iter().find(|entry| entry.ask.id == *id) else {
            return Err(match state.settled.contains(id) {
                true => ReplyError::Settled(id.clone()),
                false => ReplyError::Unknown(id.clone()),
            });
        };
        if entry.ask.fingerprint != shown {
            return Err(ReplyError::OtherCall(id.clone()));
        }
        let reaches_far = matches!(reply, Reply::Session { .. } | Reply::Always { .. });
        if reaches_far && !entry.offers_always {
            return Err(ReplyError::NotOffered { ask: id.clone(), reply: reply.as_str() });
        }
        let entry = state.take(id).ok_or_else(|| ReplyError::Unknown(id.clone()))?;
        Ok(Taken(entry))
    }

    /// Settles everything else that the session asks.
    pub(crate) fn reject_beside(&self, session: &Session) {
        let mut state = self.state();
        let beside: Vec<AskId> = state
            .waiting
            .iter()
            .filter(|entry| entry.session.is_same(session))
            .map(|entry| entry.ask.id.clone())
            .collect();
        for id in beside {
            if let Some(entry) = state.take(&id) {
                Taken(entry).settle(Settled::RejectedBeside);
            }
        }
    }

    /// Settles an ask in another way than by an answer.
    pub(crate) fn settle(&self, id: &AskId, settled: Settled) {
        let taken = self.state().take(id);
        if let Some(entry) = taken {
            Taken(entry).settle(settled);
        }
    }

    /// Settles everything, and whatever is asked later.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for entry in std::mem::take(&mut state.waiting) {
            Taken(entry).settle(Settled::Gone);
        }
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("waiting", &self.state().waiting.len()).finish()
    }
}

/// What makes an answer count.
pub(crate) type Answering = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// An ask that is off the desk and waits to be settled; dropped, it is gone.
pub(crate) struct Taken(Entry);

impl Taken {
    pub(crate) fn ask(&self) -> &Arc<Ask> {
        &self.0.ask
    }

    pub(crate) fn session(&self) -> &Session {
        &self.0.session
    }

    pub(crate) fn settle(mut self, settled: Settled) {
        let settled = match (settled, self.ask().backstage.refusal()) {
            (Settled::Reply(reply), Some(words)) if !reply.is_yes() => Settled::Refused(words),
            (settled, _) => settled,
        };
        self.0.verdict.send_replace(Some(settled));
        if let Some(driver) = self.0.driver.take() {
            driver.abort();
        }
    }
}

/// One call that waits for an answer.
pub(crate) struct Waiting {
    desk: Arc<Desk>,
    ask: Arc<Ask>,
    verdict: watch::Receiver<Option<Settled>>,
    /// Whether somebody was asked already.
    joined: bool,
}

impl Waiting {
    /// Whether the ask is one with another call's.
    pub(crate) const fn is_joined(&self) -> bool {
        self.joined
    }

    pub(crate) fn ask(&self) -> &Arc<Ask> {
        &self.ask
    }

    /// Waits until the ask is settled.
    pub(crate) async fn settled(&mut self) -> Settled {
        match self.verdict.wait_for(Option::is_some).await {
            Ok(verdict) => verdict.clone().unwrap_or(Settled::Gone),
            Err(_) => Settled::Gone,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        let Some(entry) = state.waiting.iter_mut().find(|entry| entry.ask.id == self.ask.id) else {
            return;
        };
        entry.askers -= 1;
        if entry.askers == 0
            && let Some(entry) = state.take(&self.ask.id)
        {
            drop(state);
            Taken(entry).settle(Settled::Gone);
        }
    }
}
