//! Who is connected.
//!
//! Whoever has shown a token is a guest, everybody else a stranger. A program that only
//! connects, and says nothing, must not keep out those who have something to say: where there
//! are too many strangers, the one who has waited longest has to go.
//!
//! Guests are counted for each owner of a token, and among them the one who was heard least
//! lately has to go.
//!
//! **Invariant:** how many connections there are is bounded, a stranger costs no guest
//! anything, and a guest costs no guest of another owner anything.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::Owner;

/// How many strangers there may be.
const STRANGERS: usize = 256;
/// How many guests with one token.
const GUESTS: usize = 128;

/// The places of a server.
#[derive(Debug, Default)]
pub(super) struct Room {
    seats: Mutex<Seats>,
    /// How often anybody was heard.
    heard: AtomicU64,
}

#[derive(Debug, Default)]
struct Seats {
    /// The one who has waited longest stands first.
    strangers: VecDeque<(u64, CancellationToken)>,
    guests: Vec<Guest>,
    next: u64,
}

#[derive(Debug)]
struct Guest {
    id: u64,
    owner: Owner,
    /// The larger, the later it was heard.
    heard: Arc<AtomicU64>,
    gone: CancellationToken,
}

/// The place of one connection, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    room: Arc<Room>,
    id: u64,
    heard: Arc<AtomicU64>,
    gone: CancellationToken,
    /// Whose guest this is, once it is one.
    owner: Mutex<Option<Owner>>,
}

impl Room {
    /// A place for a stranger.
    pub(super) fn seat(self: &Arc<Self>) -> Arc<Seat> {
        let mut seats = lock(&self.seats);
        if seats.strangers.len() == STRANGERS
            && let Some((_, longest)) = seats.strangers.pop_front()
        {
            longest.cancel();
        }
        let (id, gone) = (seats.next, CancellationToken::new());
        seats.next += 1;
        seats.strangers.push_back((id, gone.clone()));
        let (heard, owner) = Default::default();
        Arc::new(Seat { room: Arc::clone(self), id, heard, gone, owner })
    }
}

impl Seat {
    /// Makes a guest of a stranger, and lets a guest stay who was heard again.
    pub(super) fn admit(&self, owner: &Owner) {
        let now = self.room.heard.fetch_add(1, Ordering::Relaxed);
        self.heard.store(now, Ordering::Relaxed);
        let mut known = lock(&self.owner);
        if known.as_ref() != Some(owner) {
            *known = Some(owner.clone());
            let heard = Arc::clone(&self.heard);
            let guest = Guest { id: self.id, owner: owner.clone(), heard, gone: self.gone.clone() };
            lock(&self.room.seats).admit(guest);
        }
    }

    /// Waits until this one has to go.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

impl Seats {
    fn admit(&mut self, guest: Guest) {
        self.leave(guest.id);
        let own = || self.guests.iter().enumerate().filter(|(_, it)| it.owner == guest.owner);
        let longest = own().min_by_key(|(_, it)| it.heard.load(Ordering::Relaxed));
        if own().count() >= GUESTS
            && let Some((at, _)) = longest
        {
            self.guests.swap_remove(at).gone.cancel();
        }
        self.guests.push(guest);
    }

    fn leave(&mut self, id: u64) {
        self.strangers.retain(|(other, _)| *other != id);
        self.guests.retain(|guest| guest.id != id);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.room.seats).leave(self.id);
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::mcp::Principal;

    // RS4
    #[test]
    fn a_crowd_of_strangers_puts_out_the_oldest_of_them_and_no_guest() {
        let room = Arc::<Room>::default();
        let guest = room.seat();
        guest.admit(&None);
        guest.admit(&None);
        let strangers: Vec<_> = (0..STRANGERS + 3).map(|_| room.seat()).collect();
        let gone = strangers.iter().filter(|seat| seat.gone.is_cancelled()).count();
        assert_eq!(gone, 3);
        assert!(strangers[..3].iter().all(|seat| seat.gone.is_cancelled()));
        assert!(!guest.gone.is_cancelled());
        drop((strangers, guest));
        let seats = lock(&room.seats);
        assert_eq!((seats.strangers.len(), seats.guests.len()), (0, 0));
    }

    #[test]
    fn a_crowd_of_guests_puts_out_those_of_its_own_owner() {
        let room = Arc::<Room>::default();
        let bob = room.seat();
        bob.admit(&None);
        let ada: Owner = Some(Arc::new(Principal::new("ada")));
        let guests: Vec<_> = (0..GUESTS).map(|_| room.seat()).collect();
        guests.iter().for_each(|guest| guest.admit(&ada));
        guests[0].admit(&ada);
        let late = room.seat();
        late.admit(&ada);
        let gone: Vec<_> = guests.iter().map(|guest| guest.gone.is_cancelled()).collect();
        assert!(gone[1] && !gone[0], "the one who was heard least lately");
        assert_eq!(gone.iter().filter(|gone| **gone).count(), 1);
        assert!(!bob.gone.is_cancelled() && !late.gone.is_cancelled());
    }

    #[test]
    fn a_guest_is_that_of_the_token_that_it_showed_last() {
        let room = Arc::<Room>::default();
        let guest = room.seat();
        let ada: Owner = Some(Arc::new(Principal::new("ada")));
        for owner in [&None, &ada, &ada] {
            guest.admit(owner);
            let seats = lock(&room.seats);
            assert_eq!((seats.strangers.len(), seats.guests.len()), (0, 1));
            assert_eq!(seats.guests[0].owner, *owner);
        }
    }
}
