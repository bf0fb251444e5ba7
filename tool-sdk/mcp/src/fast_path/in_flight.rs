//! The requests of a client that are in flight, answered here or by rmcp.
//!
//! **Invariant:** no two requests in flight have the same id.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rmcp::model::RequestId;
use tool_sdk_core::internal::LazyCancelToken;

use super::json_rpc_batch::JsonRpcBatch;

/// How many there may be before more have to wait.
const MAX_IN_FLIGHT: usize = 256;

/// The open requests, by their ids as they are written.
#[derive(Default)]
pub(crate) struct InFlightRequests {
    state: Mutex<State>,
    /// How many there are, for those who only want to know that.
    count: AtomicUsize,
}

/// A request that is open for as long as this is there.
pub(crate) struct InFlightGuard {
    requests: Arc<InFlightRequests>,
    id: Arc<str>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.requests.lock_state().ended = Some(Instant::now());
        self.requests.remove(&self.id);
    }
}

#[derive(Default)]
struct State {
    /// Few at a time, so that a look at each is sooner done than a hash.
    requests: Vec<OpenRequest>,
    /// Who waits for room.
    waker: Option<Waker>,
    /// When a request ended that had a [`InFlightGuard`], for the last time.
    ended: Option<Instant>,
}

/// A request that is open.
pub(super) struct OpenRequest {
    id: Arc<str>,
    /// With what one ends that is answered here.
    cancel: Option<LazyCancelToken>,
    /// Where the answer of rmcp goes, where that is to others.
    batch: Option<Arc<JsonRpcBatch>>,
}

impl OpenRequest {
    pub(super) fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), cancel: None, batch: None }
    }

    pub(super) fn cancelled_by(self, cancel: LazyCancelToken) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    pub(super) fn with_batch(self, batch: Option<Arc<JsonRpcBatch>>) -> Self {
        Self { batch, ..self }
    }
}

impl State {
    fn position(&self, id: &str) -> Option<usize> {
        self.requests.iter().position(|request| *request.id == *id)
    }
}

/// The id of a message that was read, as it is written.
pub(crate) fn id_json(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => serde_json::Value::from(&**text).to_string(),
    }
}

impl InFlightRequests {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.count() > 0 && self.lock_state().position(id).is_some()
    }

    /// Opens a request; says whether its id was free.
    pub(super) fn insert(&self, request: OpenRequest) -> bool {
        let mut state = self.lock_state();
        let is_free = state.position(&request.id).is_none();
        if is_free {
            state.requests.push(request);
            self.count.store(state.requests.len(), Ordering::Release);
        }
        is_free
    }

    /// Where the answer to a request goes, when it comes, where that is to others.
    pub(super) fn take_batch(&self, id: &str) -> Option<Arc<JsonRpcBatch>> {
        let mut state = self.lock_state();
        let at = state.position(id)?;
        state.requests.get_mut(at)?.batch.take()
    }

    /// Lets all batches go: no more answers will come.
    pub(super) fn release_batches(&self) {
        let mut state = self.lock_state();
        let batches: Vec<_> = state.requests.iter_mut().filter_map(|it| it.batch.take()).collect();
        drop(state);
        // Batches without other references are sent now.
        drop(batches);
    }

    /// The same for as long as what this gives is there; nothing where the id is taken.
    pub(crate) fn insert_guarded(self: &Arc<Self>, id: &str) -> Option<InFlightGuard> {
        let id = Arc::<str>::from(id);
        self.insert(OpenRequest::new(Arc::clone(&id)))
            .then(|| InFlightGuard { requests: Arc::clone(self), id })
    }

    pub(super) fn remove(&self, id: &str) {
        let (waker, ended) = {
            let mut state = self.lock_state();
            let ended = state.position(id).map(|at| state.requests.swap_remove(at));
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
    pub(super) fn cancel_call(&self, id: &str) -> bool {
        let state = self.lock_state();
        let request = state.position(id).and_then(|at| state.requests.get(at));
        let Some(cancel) = request.and_then(|request| request.cancel.clone()) else { return false };
        drop(state);
        cancel.token().cancel();
        true
    }

    /// When the last request ended; nothing where none has.
    pub(crate) fn last_ended(&self) -> Option<Instant> {
        self.lock_state().ended
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    pub(crate) fn has_capacity(&self) -> bool {
        self.count() < MAX_IN_FLIGHT
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn poll_capacity(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock_state();
        if state.requests.len() < MAX_IN_FLIGHT {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
