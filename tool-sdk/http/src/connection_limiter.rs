//! Limits the number of connections.
//!
//! A connection counts as authenticated once it has sent a valid token. An idle client must not
//! block others: when there are too many unauthenticated connections, the oldest one is closed.
//!
//! Authenticated connections are limited per principal. A further one closes the connection without
//! a running request that was not active for longest; if all have one, it is refused.
//!
//! **Invariant:** the number of connections is bounded, no connection with a running request is
//! closed for another one, an unauthenticated connection never evicts an authenticated one, and a
//! principal never evicts connections of another one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Bytes, Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use super::auth::PrincipalKey;

/// The maximum number of unauthenticated connections.
const MAX_UNAUTHENTICATED: usize = 256;

/// The connections of a server.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    table: Mutex<ConnectionTable>,
    max_per_principal: usize,
    /// A logical clock of requests.
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    /// The oldest connection first.
    unauthenticated: VecDeque<(u64, CancellationToken)>,
    authenticated: Vec<AuthenticatedConnection>,
    next: u64,
}

#[derive(Debug)]
struct AuthenticatedConnection {
    id: u64,
    principal: PrincipalKey,
    activity: Arc<ConnectionActivity>,
    evicted: CancellationToken,
}

/// What a connection does.
#[derive(Debug, Default)]
struct ConnectionActivity {
    /// The time of its last request, by the clock of requests.
    last_active: AtomicU64,
    /// Whether a request runs, which was read completely.
    is_running: AtomicBool,
}

/// All connections of the principal have running requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyConnections;

/// The slot of one connection, free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    limiter: Arc<ConnectionLimiter>,
    id: u64,
    activity: Arc<ConnectionActivity>,
    evicted: CancellationToken,
    /// The principal of the last request.
    principal: Mutex<Option<PrincipalKey>>,
}

impl ConnectionLimiter {
    pub(super) fn new(max_per_principal: usize) -> Arc<Self> {
        let (table, clock) = Default::default();
        Arc::new(Self { table, max_per_principal, clock })
    }

    /// Returns a slot for an unauthenticated connection.
    pub(super) fn acquire_slot(self: &Arc<Self>) -> Arc<ConnectionSlot> {
        let mut table = lock(&self.table);
        if table.unauthenticated.len() == MAX_UNAUTHENTICATED
            && let Some((_, oldest)) = table.unauthenticated.pop_front()
        {
            oldest.cancel();
        }
        let (id, evicted) = (table.next, CancellationToken::new());
        table.next += 1;
        table.unauthenticated.push_back((id, evicted.clone()));
        let (activity, principal) = Default::default();
        Arc::new(ConnectionSlot { limiter: Arc::clone(self), id, activity, evicted, principal })
    }
}

impl ConnectionSlot {
    /// Counts the connection among those of its principal, and notes that it is active.
    pub(super) fn mark_authenticated(
        &self,
        principal: &PrincipalKey,
    ) -> Result<(), TooManyConnections> {
        let now = self.limiter.clock.fetch_add(1, Ordering::Relaxed);
        self.activity.last_active.store(now, Ordering::Relaxed);
        let mut known = lock(&self.principal);
        if known.as_ref() != Some(principal) {
            let connection = AuthenticatedConnection {
                id: self.id,
                principal: principal.clone(),
                activity: Arc::clone(&self.activity),
                evicted: self.evicted.clone(),
            };
            let max = self.limiter.max_per_principal;
            lock(&self.limiter.table).insert_authenticated(connection, max)?;
            *known = Some(principal.clone());
        }
        Ok(())
    }

    /// Waits until the connection must be closed.
    pub(super) async fn wait_for_eviction(&self) {
        self.evicted.cancelled().await;
    }

    /// Marks the connection as busy until the guard is dropped.
    #[cfg(feature = "rest")]
    pub(super) fn start_running(self: Arc<Self>) -> impl Send + use<> {
        self.activity.is_running.store(true, Ordering::Relaxed);
        RunningGuard(self)
    }

    /// Marks a request as running as soon as its body is read.
    pub(super) fn track_request(self: &Arc<Self>, request: Request<Body>) -> Request<Body> {
        let slot = Arc::clone(self);
        request.map(|body| Body::new(TrackedBody { body, slot: Some(slot), _running: None }))
    }

    /// Marks the request as ended when the body of its response is dropped.
    pub(super) fn track_response(self: &Arc<Self>, response: Response<Body>) -> Response<Body> {
        let running = RunningGuard(Arc::clone(self));
        response.map(|body| Body::new(TrackedBody { body, slot: None, _running: Some(running) }))
    }
}

impl ConnectionTable {
    fn insert_authenticated(
        &mut self,
        connection: AuthenticatedConnection,
        max: usize,
    ) -> Result<(), TooManyConnections> {
        let own = |it: &&AuthenticatedConnection| {
            it.principal == connection.principal && it.id != connection.id
        };
        if self.authenticated.iter().filter(own).count() >= max {
            let idle = self.authenticated.iter().filter(own);
            let idle = idle.filter(|it| !it.activity.is_running.load(Ordering::Relaxed));
            let oldest = idle.min_by_key(|it| it.activity.last_active.load(Ordering::Relaxed));
            let oldest = oldest.ok_or(TooManyConnections)?;
            oldest.evicted.cancel();
            let oldest = oldest.id;
            self.remove(oldest);
        }
        self.remove(connection.id);
        self.authenticated.push(connection);
        Ok(())
    }

    fn remove(&mut self, id: u64) {
        self.unauthenticated.retain(|(other, _)| *other != id);
        self.authenticated.retain(|connection| connection.id != id);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.limiter.table).remove(self.id);
    }
}

/// Keeps a request running.
struct RunningGuard(Arc<ConnectionSlot>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.activity.is_running.store(false, Ordering::Relaxed);
    }
}

/// The body of a request, which runs once all of it was read, or of its response.
struct TrackedBody {
    body: Body,
    /// The slot of a request.
    slot: Option<Arc<ConnectionSlot>>,
    _running: Option<RunningGuard>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let (None, Some(slot)) = (&frame, &self.slot) {
            slot.activity.is_running.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // The end of a request must be read.
        self.slot.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tool_sdk_core::Principal;

    use super::*;

    const MAX: usize = 8;

    fn connect(limiter: &Arc<ConnectionLimiter>, principal: &PrincipalKey) -> Arc<ConnectionSlot> {
        let slot = limiter.acquire_slot();
        slot.mark_authenticated(principal).unwrap();
        slot
    }

    // RS4
    #[test]
    fn closes_the_oldest_unauthenticated_connection_and_no_authenticated_one() {
        let limiter = ConnectionLimiter::new(MAX);
        let authenticated = connect(&limiter, &None);
        authenticated.mark_authenticated(&None).unwrap();
        let others: Vec<_> = (0..MAX_UNAUTHENTICATED + 3).map(|_| limiter.acquire_slot()).collect();
        let evicted = others.iter().filter(|slot| slot.evicted.is_cancelled()).count();
        assert_eq!(evicted, 3);
        assert!(others[..3].iter().all(|slot| slot.evicted.is_cancelled()));
        assert!(!authenticated.evicted.is_cancelled());
        drop((others, authenticated));
        let table = lock(&limiter.table);
        assert_eq!((table.unauthenticated.len(), table.authenticated.len()), (0, 0));
    }

    #[test]
    fn closes_the_least_recently_active_idle_connection_of_the_same_principal() {
        let limiter = ConnectionLimiter::new(MAX);
        let bob = connect(&limiter, &None);
        let ada: PrincipalKey = Some(Arc::new(Principal::new("ada")));
        let slots: Vec<_> = (0..MAX).map(|_| connect(&limiter, &ada)).collect();
        slots[0].mark_authenticated(&ada).unwrap();
        slots[1].activity.is_running.store(true, Ordering::Relaxed);
        let late = connect(&limiter, &ada);
        let evicted: Vec<_> = slots.iter().map(|slot| slot.evicted.is_cancelled()).collect();
        assert!(evicted[2] && !evicted[1] && !evicted[0]);
        assert_eq!(evicted.iter().filter(|evicted| **evicted).count(), 1);
        assert!(!bob.evicted.is_cancelled() && !late.evicted.is_cancelled());
    }

    #[test]
    fn refuses_a_connection_if_all_others_have_running_requests() {
        let limiter = ConnectionLimiter::new(MAX);
        let slots: Vec<_> = (0..MAX).map(|_| connect(&limiter, &None)).collect();
        slots.iter().for_each(|slot| slot.activity.is_running.store(true, Ordering::Relaxed));
        let late = limiter.acquire_slot();
        assert_eq!(late.mark_authenticated(&None), Err(TooManyConnections));
        assert!(slots.iter().all(|slot| !slot.evicted.is_cancelled()));
        drop(RunningGuard(Arc::clone(&slots[3])));
        assert_eq!(late.mark_authenticated(&None), Ok(()));
        assert!(slots[3].evicted.is_cancelled());
    }

    #[test]
    fn counts_a_connection_for_the_principal_of_its_last_request() {
        let limiter = ConnectionLimiter::new(MAX);
        let slot = limiter.acquire_slot();
        let ada: PrincipalKey = Some(Arc::new(Principal::new("ada")));
        for principal in [&None, &ada, &ada] {
            slot.mark_authenticated(principal).unwrap();
            let table = lock(&limiter.table);
            assert_eq!((table.unauthenticated.len(), table.authenticated.len()), (0, 1));
            assert_eq!(table.authenticated[0].principal, *principal);
        }
    }
}
