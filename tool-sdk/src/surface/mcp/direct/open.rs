//! The requests of a peer that have no answer yet, answered here or by rmcp.
//!
//! **Invariant:** no two of them have one id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use super::together::Together;

/// How many there may be before more have to wait.
const MOST: usize = 256;

/// The open requests, by their ids as they are written.
#[derive(Default)]
pub(in super::super) struct Open(Mutex<State>);

/// A request that is open for as long as this is there.
pub(in super::super) struct Ticket {
    open: Arc<Open>,
    id: String,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.open.end(&self.id);
    }
}

#[derive(Default)]
struct State {
    /// With what ends those that are answered here.
    requests: HashMap<String, Option<CancellationToken>>,
    /// What those that rmcp answers came with, where that was a batch.
    batches: HashMap<String, Arc<Together>>,
    /// Who waits for room.
    waker: Option<Waker>,
}

/// The id of a message that was read, as it is written.
pub(in super::super) fn written(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => serde_json::Value::from(&**text).to_string(),
    }
}

impl Open {
    pub(super) fn has(&self, id: &str) -> bool {
        self.state().requests.contains_key(id)
    }

    /// Opens a request; says whether its id was free.
    pub(super) fn begin(&self, id: String, cancel: Option<CancellationToken>) -> bool {
        let mut state = self.state();
        let is_free = !state.requests.contains_key(&id);
        if is_free {
            state.requests.insert(id, cancel);
        }
        is_free
    }

    /// Writes down that the answer to a request goes to the others of its batch.
    pub(super) fn join(&self, id: String, batch: Arc<Together>) {
        self.state().batches.insert(id, batch);
    }

    /// Where the answer to a request goes, when it comes, where that is to others.
    pub(super) fn joined(&self, id: &str) -> Option<Arc<Together>> {
        self.state().batches.remove(id)
    }

    /// The same for as long as what this gives is there; nothing where the id is taken.
    pub(in super::super) fn ticket(self: &Arc<Self>, id: String) -> Option<Ticket> {
        self.begin(id.clone(), None).then(|| Ticket { open: Arc::clone(self), id })
    }

    pub(super) fn end(&self, id: &str) {
        let (waker, batch) = {
            let mut state = self.state();
            state.requests.remove(id);
            (state.waker.take(), state.batches.remove(id))
        };
        drop(batch);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends a request early; says whether it was one of those that are answered here. It stays
    /// open until its call has ended.
    pub(super) fn cancel(&self, id: &str) -> bool {
        match self.state().requests.get(id) {
            Some(Some(cancel)) => cancel.cancel(),
            _ => return false,
        }
        true
    }

    pub(in super::super) fn has_room(&self) -> bool {
        self.state().requests.len() < MOST
    }

    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.requests.len() < MOST {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
