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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::Owner;

/// How many strangers there may be.
const STRANGERS: usize = 256;
/// How many guests with one token.
const GUESTS: usize = 128;

/// The places of a server.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Seats>);

#[derive(Debug, Default)]
struct Seats {
    /// The one who has waited longest stands first.
    strangers: VecDeque<(u64, CancellationToken)>,
    /// The one who was heard last stands last.
    guests: VecDeque<(u64, Owner, CancellationToken)>,
    next: u64,
}

/// The place of one connection, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    room: Arc<Room>,
    id: u64,
    gone: CancellationToken,
}

impl Room {
    /// A place for a stranger.
    pub(super) fn seat(self: &Arc<Self>) -> Arc<Seat> {
        let mut seats = self.seats();
        if seats.strangers.len() == STRANGERS
            && let Some((_, longest)) = seats.strangers.pop_front()
        {
            longest.cancel();
        }
        let (id, gone) = (seats.next, CancellationToken::new());
        seats.next += 1;
        seats.strangers.push_back((id, gone.clone()));
        Arc::new(Seat { room: Arc::clone(self), id, gone })
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Makes a guest of a stranger, and lets a guest stay who was heard again.
    pub(super) fn admit(&self, owner: &Owner) {
        let mut seats = self.room.seats();
        seats.leave(self.id);
        let mut own = seats.guests.iter().enumerate().filter(|(_, (_, whose, _))| whose == owner);
        let first = own.next().map(|(at, _)| at);
        if own.count() + 1 >= GUESTS
            && let Some((.., longest)) = first.and_then(|at| seats.guests.remove(at))
        {
            longest.cancel();
        }
        seats.guests.push_back((self.id, owner.clone(), self.gone.clone()));
    }

    /// Waits until this one has to go.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

impl Seats {
    fn leave(&mut self, id: u64) {
        self.strangers.retain(|(other, _)| *other != id);
        self.guests.retain(|(other, ..)| *other != id);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.seats().leave(self.id);
    }
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
        let seats = room.seats();
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
}
