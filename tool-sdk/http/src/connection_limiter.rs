//! Limits the number of connections.
//!
//! A connection counts as authenticated once it has sent a valid token. An idle client must not
//! block others: when there are too many unauthenticated connections, the oldest one is closed.
//!
//! Authenticated connections are limited per principal; the least recently active one is closed.
//!
//! **Invariant:** the number of connections is bounded, an unauthenticated connection never evicts
//! an authenticated one, and a principal never evicts connections of another one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::auth::PrincipalKey;

/// How many strangers there may be.
const MAX_UNAUTHENTICATED: usize = 256;
/// How many guests with one token.
const MAX_PER_PRINCIPAL: usize = 128;

/// The places of a server.
#[derive(Debug, Default)]
pub(super) struct ConnectionLimiter {
    table: Mutex<ConnectionTable>,
    /// A logical clock of requests.
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    /// The one who has waited longest stands first.
    unauthenticated: VecDeque<(u64, CancellationToken)>,
    authenticated: Vec<AuthenticatedConnection>,
    next: u64,
}

#[derive(Debug)]
struct AuthenticatedConnection {
    id: u64,
    principal: PrincipalKey,
    /// The larger, the later it was heard.
    last_active: Arc<AtomicU64>,
    evicted: CancellationToken,
}

/// The place of one connection, free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    limiter: Arc<ConnectionLimiter>,
    id: u64,
    last_active: Arc<AtomicU64>,
    evicted: CancellationToken,
    /// Whose guest this is, once it is one.
    principal: Mutex<Option<PrincipalKey>>,
}

impl ConnectionLimiter {
    /// A place for a stranger.
    pub(super) fn acquire_slot(self: &Arc<Self>) -> Arc<ConnectionSlot> {
        let mut seats = lock(&self.table);
        if seats.unauthenticated.len() == MAX_UNAUTHENTICATED
            && let Some((_, longest)) = seats.unauthenticated.pop_front()
        {
            longest.cancel();
        }
        let (id, gone) = (seats.next, CancellationToken::new());
        seats.next += 1;
        seats.unauthenticated.push_back((id, gone.clone()));
        let (heard, owner) = Default::default();
        Arc::new(ConnectionSlot {
            limiter: Arc::clone(self),
            id,
            last_active: heard,
            evicted: gone,
            principal: owner,
        })
    }
}

impl ConnectionSlot {
    /// Makes a guest of a stranger, and lets a guest stay who was heard again.
    pub(super) fn mark_authenticated(&self, owner: &PrincipalKey) {
        let now = self.limiter.clock.fetch_add(1, Ordering::Relaxed);
        self.last_active.store(now, Ordering::Relaxed);
        let mut known = lock(&self.principal);
        if known.as_ref() != Some(owner) {
            *known = Some(owner.clone());
            let heard = Arc::clone(&self.last_active);
            let guest = AuthenticatedConnection {
                id: self.id,
                principal: owner.clone(),
                last_active: heard,
                evicted: self.evicted.clone(),
            };
            lock(&self.limiter.table).insert_authenticated(guest);
        }
    }

    /// Waits until this one has to go.
    pub(super) async fn wait_for_eviction(&self) {
        self.evicted.cancelled().await;
    }
}

impl ConnectionTable {
    fn insert_authenticated(&mut self, guest: AuthenticatedConnection) {
        self.remove(guest.id);
        let own = || {
            self.authenticated.iter().enumerate().filter(|(_, it)| it.principal == guest.principal)
        };
        let longest = own().min_by_key(|(_, it)| it.last_active.load(Ordering::Relaxed));
        if own().count() >= MAX_PER_PRINCIPAL
            && let Some((at, _)) = longest
        {
            self.authenticated.swap_remove(at).evicted.cancel();
        }
        self.authenticated.push(guest);
    }

    fn remove(&mut self, id: u64) {
        self.unauthenticated.retain(|(other, _)| *other != id);
        self.authenticated.retain(|guest| guest.id != id);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.limiter.table).remove(self.id);
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tool_sdk_core::Principal;

    use super::*;

    // RS4
    #[test]
    fn a_crowd_of_strangers_puts_out_the_oldest_of_them_and_no_guest() {
        let room = Arc::<ConnectionLimiter>::default();
        let guest = room.acquire_slot();
        guest.mark_authenticated(&None);
        guest.mark_authenticated(&None);
        let strangers: Vec<_> = (0..MAX_UNAUTHENTICATED + 3).map(|_| room.acquire_slot()).collect();
        let gone = strangers.iter().filter(|seat| seat.evicted.is_cancelled()).count();
        assert_eq!(gone, 3);
        assert!(strangers[..3].iter().all(|seat| seat.evicted.is_cancelled()));
        assert!(!guest.evicted.is_cancelled());
        drop((strangers, guest));
        let seats = lock(&room.table);
        assert_eq!((seats.unauthenticated.len(), seats.authenticated.len()), (0, 0));
    }

    #[test]
    fn a_crowd_of_guests_puts_out_those_of_its_own_owner() {
        let room = Arc::<ConnectionLimiter>::default();
        let bob = room.acquire_slot();
        bob.mark_authenticated(&None);
        let ada: PrincipalKey = Some(Arc::new(Principal::new("ada")));
        let guests: Vec<_> = (0..MAX_PER_PRINCIPAL).map(|_| room.acquire_slot()).collect();
        guests.iter().for_each(|guest| guest.mark_authenticated(&ada));
        guests[0].mark_authenticated(&ada);
        let late = room.acquire_slot();
        late.mark_authenticated(&ada);
        let gone: Vec<_> = guests.iter().map(|guest| guest.evicted.is_cancelled()).collect();
        assert!(gone[1] && !gone[0], "the one who was heard least lately");
        assert_eq!(gone.iter().filter(|gone| **gone).count(), 1);
        assert!(!bob.evicted.is_cancelled() && !late.evicted.is_cancelled());
    }

    #[test]
    fn a_guest_is_that_of_the_token_that_it_showed_last() {
        let room = Arc::<ConnectionLimiter>::default();
        let guest = room.acquire_slot();
        let ada: PrincipalKey = Some(Arc::new(Principal::new("ada")));
        for owner in [&None, &ada, &ada] {
            guest.mark_authenticated(owner);
            let seats = lock(&room.table);
            assert_eq!((seats.unauthenticated.len(), seats.authenticated.len()), (0, 1));
            assert_eq!(seats.authenticated[0].principal, *owner);
        }
    }
}
