//! Who is connected.
//!
//! Whoever has shown a token is a guest, everybody else a stranger. A program that only
//! connects, and says nothing, must not keep out those who have something to say: where there
//! are too many strangers, the one who has waited longest has to go.
//!
//! **Invariant:** how many connections there are is bounded, and a stranger costs no guest
//! anything.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// How many of each kind there may be.
const STRANGERS: usize = 256;
const GUESTS: usize = 256;

/// The places of a server.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Seats>);

#[derive(Debug, Default)]
struct Seats {
    /// The one who has waited longest stands first.
    strangers: VecDeque<(u64, CancellationToken)>,
    guests: usize,
    next: u64,
}

/// The place of one connection, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    room: Arc<Room>,
    id: u64,
    is_guest: AtomicBool,
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
        Arc::new(Seat { room: Arc::clone(self), id, is_guest: AtomicBool::new(false), gone })
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Makes a guest of a stranger; says whether there is room for one.
    pub(super) fn admit(&self) -> bool {
        if self.is_guest.load(Ordering::Relaxed) {
            return true;
        }
        let mut seats = self.room.seats();
        if seats.guests == GUESTS {
            return false;
        }
        seats.guests += 1;
        seats.strangers.retain(|(id, _)| *id != self.id);
        self.is_guest.store(true, Ordering::Relaxed);
        true
    }

    /// Waits until this one has to go.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.room.seats();
        if *self.is_guest.get_mut() {
            seats.guests -= 1;
        } else {
            seats.strangers.retain(|(id, _)| *id != self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RS4
    #[test]
    fn a_crowd_of_strangers_puts_out_the_oldest_of_them_and_no_guest() {
        let room = Arc::<Room>::default();
        let guest = room.seat();
        assert!(guest.admit() && guest.admit());
        let strangers: Vec<_> = (0..STRANGERS + 3).map(|_| room.seat()).collect();
        let gone = strangers.iter().filter(|seat| seat.gone.is_cancelled()).count();
        assert_eq!(gone, 3);
        assert!(strangers[..3].iter().all(|seat| seat.gone.is_cancelled()));
        assert!(!guest.gone.is_cancelled());
        drop((strangers, guest));
        let seats = room.seats();
        assert_eq!((seats.strangers.len(), seats.guests), (0, 0));
    }

    #[test]
    fn there_is_room_for_so_many_guests() {
        let room = Arc::<Room>::default();
        let guests: Vec<_> = (0..GUESTS).map(|_| room.seat()).collect();
        assert!(guests.iter().all(|guest| guest.admit()));
        let late = room.seat();
        assert!(!late.admit());
        drop(guests);
        assert!(late.admit());
    }
}
