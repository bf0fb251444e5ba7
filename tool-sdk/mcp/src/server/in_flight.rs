//! The requests of one client that are in flight, by id.
//!
//! Only so many run at once; further ones wait in their order.
//!
//! **Invariant:** no two registered requests have the same id, and the number of requests that run
//! and the size of those that wait are bounded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rmcp::model::{ErrorData, RequestId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tool_sdk_core::internal::LazyCancelToken;

use super::message::{duplicate_id_error, too_many_requests_error};

/// The maximum number of requests that run.
const MAX_RUNNING: usize = 256;
/// The maximum size of all requests that wait, in bytes.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// What a request that waits occupies beside its message.
const WAITING_OVERHEAD: usize = 4096;
/// The maximum number of `subscriptions/listen` requests.
const MAX_LISTENERS: usize = 256;

/// The requests in flight of one client.
pub(super) struct InFlightRequests {
    state: Mutex<InFlightState>,
    permits: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
    waiting_bytes: AtomicUsize,
}

impl Default for InFlightRequests {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            permits: Arc::new(Semaphore::new(MAX_RUNNING)),
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            waiting_bytes: AtomicUsize::new(0),
        }
    }
}

#[derive(Default)]
struct InFlightState {
    requests: HashMap<RequestId, LazyCancelToken>,
    /// When the last request ended.
    last_ended: Option<Instant>,
}

impl InFlightRequests {
    /// Registers a request until the guard is dropped.
    pub(super) fn insert(
        self: &Arc<Self>,
        id: &RequestId,
        cancel: LazyCancelToken,
    ) -> Result<InFlightGuard, ErrorData> {
        let mut state = self.lock_state();
        if state.requests.contains_key(id) {
            return Err(duplicate_id_error());
        }
        state.requests.insert(id.clone(), cancel);
        drop(state);
        Ok(InFlightGuard { requests: Arc::clone(self), id: id.clone() })
    }

    /// Returns the error if a request has this id.
    pub(super) fn check_free(&self, id: &RequestId) -> Result<(), ErrorData> {
        match self.lock_state().requests.contains_key(id) {
            true => Err(duplicate_id_error()),
            false => Ok(()),
        }
    }

    /// Cancels a request.
    pub(super) fn cancel(&self, id: &RequestId) {
        let cancel = self.lock_state().requests.get(id).cloned();
        if let Some(cancel) = cancel {
            cancel.token().cancel();
        }
    }

    /// Cancels all requests.
    pub(super) fn cancel_all(&self) {
        let all: Vec<_> = self.lock_state().requests.values().cloned().collect();
        for cancel in all {
            cancel.token().cancel();
        }
    }

    /// Waits until a request of this size may run. Fails when too much waits already, or when the
    /// request is cancelled before.
    pub(super) async fn acquire_permit(
        &self,
        size: usize,
        cancel: &LazyCancelToken,
    ) -> Result<OwnedSemaphorePermit, ErrorData> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let size = size + WAITING_OVERHEAD;
        let waiting = self.waiting_bytes.fetch_add(size, Ordering::Relaxed);
        let waiting = WaitingRequest { requests: self, size, before: waiting };
        if waiting.before + size > MAX_WAITING_BYTES {
            return Err(too_many_requests_error());
        }
        let acquiring = Arc::clone(&self.permits).acquire_owned();
        match cancel.token().run_until_cancelled(acquiring).await {
            Some(Ok(permit)) if !cancel.is_cancelled() => Ok(permit),
            _ => Err(too_many_requests_error()),
        }
    }

    /// Returns a permit for a `subscriptions/listen` request, which lasts as long as its client
    /// wants.
    pub(super) fn acquire_listener(&self) -> Result<OwnedSemaphorePermit, ErrorData> {
        Arc::clone(&self.listeners).try_acquire_owned().map_err(|_| {
            let words = "too many subscriptions are open; close some of them first";
            ErrorData::invalid_request(words, None)
        })
    }

    /// Returns when the last request ended.
    pub(super) fn last_ended(&self) -> Option<Instant> {
        self.lock_state().last_ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock_state().requests.is_empty()
    }

    fn lock_state(&self) -> MutexGuard<'_, InFlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request among those that wait.
struct WaitingRequest<'a> {
    requests: &'a InFlightRequests,
    size: usize,
    /// The size of those that waited before it.
    before: usize,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.requests.waiting_bytes.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// Keeps a request in flight.
pub(super) struct InFlightGuard {
    requests: Arc<InFlightRequests>,
    id: RequestId,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut state = self.requests.lock_state();
        state.last_ended = Some(Instant::now());
        state.requests.remove(&self.id);
    }
}
