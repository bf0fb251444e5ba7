//! The requests of a peer that have no answer yet, answered here or by rmcp.
//!
//! **Invariant:** no two of them have one id.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rmcp::model::RequestId;

use super::together::Together;
use crate::call::Cancel;

/// How many there may be before more have to wait.
const MOST: usize = 256;

/// The open requests, by their ids as they are written.
#[derive(Default)]
pub(in super::super) struct Open {
    state: Mutex<State>,
    /// How many there are, for those who only want to know that.
    count: AtomicUsize,
}

/// A request that is open for as long as this is there.
pub(in super::super) struct Ticket {
    open: Arc<Open>,
    id: Arc<str>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.open.state().ended = Some(Instant::now());
        self.open.end(&self.id);
    }
}

#[derive(Default)]
struct State {
    /// Few at a time, so that a look at each is sooner done than a hash.
    requests: Vec<Request>,
    /// Who waits for room.
    waker: Option<Waker>,
    /// When a request ended that had a [`Ticket`], for the last time.
    ended: Option<Instant>,
}

/// A request that is open.
pub(super) struct Request {
    id: Arc<str>,
    /// With what one ends that is answered here.
    cancel: Option<Cancel>,
    /// Where the answer of rmcp goes, where that is to others.
    batch: Option<Arc<Together>>,
}

impl Request {
    pub(super) fn of(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), cancel: None, batch: None }
    }

    pub(super) fn cancelled_by(self, cancel: Cancel) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    pub(super) fn among(self, batch: Option<Arc<Together>>) -> Self {
        Self { batch, ..self }
    }
}

impl State {
    fn find(&self, id: &str) -> Option<usize> {
        self.requests.iter().position(|request| *request.id == *id)
    }
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
        self.count() > 0 && self.state().find(id).is_some()
    }

    /// Opens a request; says whether its id was free.
    pub(super) fn begin(&self, request: Request) -> bool {
        let mut state = self.state();
        let is_free = state.find(&request.id).is_none();
        if is_free {
            state.requests.push(request);
            self.count.store(state.requests.len(), Ordering::Release);
        }
        is_free
    }

    /// Where the answer to a request goes, when it comes, where that is to others.
    pub(super) fn joined(&self, id: &str) -> Option<Arc<Together>> {
        let mut state = self.state();
        let at = state.find(id)?;
        state.requests.get_mut(at)?.batch.take()
    }

    /// Lets all batches go: no more answers will come.
    pub(super) fn part(&self) {
        let mut state = self.state();
        let batches: Vec<_> = state.requests.iter_mut().filter_map(|it| it.batch.take()).collect();
        drop(state);
        // Those that nobody else holds leave now.
        drop(batches);
    }

    /// The same for as long as what this gives is there; nothing where the id is taken.
    pub(in super::super) fn ticket(self: &Arc<Self>, id: &str) -> Option<Ticket> {
        let id = Arc::<str>::from(id);
        self.begin(Request::of(Arc::clone(&id))).then(|| Ticket { open: Arc::clone(self), id })
    }

    pub(super) fn end(&self, id: &str) {
        let (waker, ended) = {
            let mut state = self.state();
            let ended = state.find(id).map(|at| state.requests.swap_remove(at));
            self.count.store(state.requests.len(), Ordering::Release);
            (state.waker.take(), ended)
        };
        // With the last request of a batch its answers leave.
        drop(ended);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends a request early; says whether it was one of those that are answered here. It stays
    /// open until its call has ended.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let state = self.state();
        let request = state.find(id).and_then(|at| state.requests.get(at));
        let Some(cancel) = request.and_then(|request| request.cancel.clone()) else { return false };
        drop(state);
        cancel.token().cancel();
        true
    }

    /// When the last request ended; nothing where none has.
    pub(in super::super) fn ended(&self) -> Option<Instant> {
        self.state().ended
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    pub(in super::super) fn has_room(&self) -> bool {
        self.count() < MOST
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
