//! Ready-made approvers: a script for tests, a channel for screens.

use std::collections::VecDeque;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::{Approver, Ask, Reply};

type Answer = Pin<Box<dyn Future<Output = Option<Reply>> + Send>>;

/// Answers from a list, one after the other, and no when the list is at its end.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Reply, Scripted};
///
/// let approver = Scripted::new([Reply::Once, Reply::Reject]);
/// assert!(approver.asked().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Scripted {
    replies: Mutex<VecDeque<Reply>>,
    always: Option<Reply>,
    asked: Mutex<Vec<Arc<Ask>>>,
}

impl Scripted {
    /// Gives these answers in this order.
    #[must_use]
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: Mutex::new(replies.into_iter().collect()), ..Self::default() }
    }

    /// Gives the same answer to everything.
    #[must_use]
    pub fn always(reply: Reply) -> Self {
        Self { always: Some(reply), ..Self::default() }
    }

    /// What was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Arc<Ask>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for Scripted {
    fn ask(&self, ask: Arc<Ask>) -> Answer {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(ask);
        let next = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(ready(Some(next.or_else(|| self.always.clone()).unwrap_or(Reply::Reject))))
    }
}

/// An approver that hands asks to a screen, and the screen's end of it.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Reply, ask_channel};
///
/// # async fn example() {
/// let (approver, mut inbox) = ask_channel();
/// tokio::spawn(async move {
///     while let Some(pending) = inbox.recv().await {
///         let reply = if pending.ask().dangerous { Reply::Reject } else { Reply::Once };
///         pending.reply(reply);
///     }
/// });
/// # let _ = approver;
/// # }
/// ```
#[must_use]
pub fn ask_channel() -> (AskChannel, AskInbox) {
    let (to, from) = mpsc::unbounded_channel();
    (AskChannel(to), AskInbox(from))
}

/// Hands every ask to its [`AskInbox`]; without one, the answer is no.
#[derive(Clone, Debug)]
pub struct AskChannel(mpsc::UnboundedSender<PendingAsk>);

/// Where asks arrive.
#[derive(Debug)]
pub struct AskInbox(mpsc::UnboundedReceiver<PendingAsk>);

impl AskInbox {
    /// The next ask; `None` once every approver of this inbox is gone.
    pub async fn recv(&mut self) -> Option<PendingAsk> {
        self.0.recv().await
    }

    /// The next ask, if there is one already.
    pub fn try_recv(&mut self) -> Option<PendingAsk> {
        self.0.try_recv().ok()
    }
}

/// An ask that waits for its answer; dropped, the answer is no.
pub struct PendingAsk {
    ask: Arc<Ask>,
    reply: oneshot::Sender<Reply>,
}

impl PendingAsk {
    /// What is asked.
    #[must_use]
    pub fn ask(&self) -> &Arc<Ask> {
        &self.ask
    }

    /// Whether the ask was settled in another way by now.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.reply.is_closed()
    }

    /// Answers; says whether anybody still waited.
    pub fn reply(self, reply: Reply) -> bool {
        self.reply.send(reply).is_ok()
    }
}

impl fmt::Debug for PendingAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingAsk").field(&self.ask.id).finish()
    }
}

impl Approver for AskChannel {
    fn ask(&self, ask: Arc<Ask>) -> Answer {
        let (reply, answer) = oneshot::channel();
        let shown = Arc::clone(&ask);
        let sent = self.0.send(PendingAsk { ask, reply });
        Box::pin(async move {
            match sent {
                Ok(()) => Some(answer.await.unwrap_or_else(|_| unanswered(&shown, GONE))),
                Err(_) => Some(unanswered(&shown, GONE)),
            }
        })
    }
}

const GONE: &str = "whoever was asked is gone";

/// A no that no person said, and that is not told as one: `why` there was no answer.
pub(crate) fn unanswered(ask: &Ask, why: &str) -> Reply {
    ask.backstage.refuse(why);
    Reply::RejectWith { feedback: String::new() }
}
