//! A mark as a resource limit.
//!
//! A program may leave its parents, its session and its environment behind; what it starts has
//! its limits all the same, and everybody may read them. Linux holds nobody to `RLIMIT_LOCKS`, so
//! the two numbers of that limit are free to say whose a process is.
//!
//! They are one row of digits, those of the hard limit first: the mark's own, which are all less
//! than nine, and then nines. What is below a mark has its digits and some more. That makes a
//! smaller number, so that a child may set it which may only lower its limits.
//!
//! **Invariant:** of two rows side by side, none begins with the other.

use rustix::process::Rlimit;

/// How many digits each number has room for, behind one that tells it from other limits.
const ROOM: usize = 18;

/// The first digit of the hard limit, and of the soft one, which has to be smaller.
const HARD: char = '8';
const SOFT: char = '7';

/// How many digits tell a host from others.
const HOST: u32 = 12;

/// The longest number of a mark among those beside it; then numbers come again.
const LONGEST: u32 = 8;

/// The digits of a mark, each from 0 to 8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::process) struct Row(String);

impl Row {
    /// What a limit says: no digits where there is none, and nothing where it is somebody else's.
    pub(super) fn of(limit: &Rlimit) -> Option<Self> {
        let (hard, soft) = match (limit.maximum, limit.current) {
            (None, None) => return Some(Self::default()),
            (hard, soft) => (hard?.to_string(), soft?.to_string()),
        };
        let digits = [hard.strip_prefix(HARD)?, soft.strip_prefix(SOFT)?];
        let own = digits.concat().trim_end_matches('9').to_owned();
        let is_row = digits.iter().all(|digits| digits.len() == ROOM) && !own.contains('9');
        is_row.then_some(Self(own))
    }

    /// That of a host below this one; nothing where there is no room.
    pub(super) fn host(&self, random: u128) -> Option<Self> {
        self.and(digits(random % 9_u128.pow(HOST), HOST as usize))
    }

    /// That of the mark with this number below this one; nothing where there is no room.
    pub(super) fn below(&self, number: u64) -> Option<Self> {
        let number = digits((number % 9_u64.pow(LONGEST)).into(), 1);
        // With its length in front, none is the start of another one.
        self.and(format!("{}{number}", number.len()))
    }

    fn and(&self, more: String) -> Option<Self> {
        let longer = self.0.clone() + &more;
        (longer.len() <= 2 * ROOM).then_some(Self(longer))
    }

    /// Whether it is `other`, or is below it.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// What a child with this mark takes.
    pub(super) fn limit(&self) -> Rlimit {
        let row = format!("{:9<1$}", self.0, 2 * ROOM);
        let (hard, soft) = row.split_at(ROOM);
        let number = |first, rest: &str| format!("{first}{rest}").parse().ok();
        Rlimit { current: number(SOFT, soft), maximum: number(HARD, hard) }
    }

    /// What `grep` finds in the `/proc/*/limits` of all that have this mark or one below it.
    pub(in crate::process) fn pattern(&self) -> String {
        let row = format!("{:.<1$}", self.0, 2 * ROOM);
        let (hard, soft) = row.split_at(ROOM);
        format!("^Max file locks  *{SOFT}{soft}  *{HARD}{hard} ")
    }
}

/// `number` in base nine, in at least so many digits.
fn digits(mut number: u128, least: usize) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.len() < least {
        digits.push(b'0' + (number % 9) as u8);
        number /= 9;
    }
    digits.reverse();
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limit(soft: impl Into<Option<u64>>, hard: impl Into<Option<u64>>) -> Rlimit {
        Rlimit { current: soft.into(), maximum: hard.into() }
    }

    // CH6
    #[test]
    fn a_mark_is_a_row_of_digits_and_nines() {
        let host = Row::default().host(7).unwrap();
        let command = host.below(10).unwrap();
        assert_eq!(command.0, "000000000007211");
        let row = command.limit();
        assert_eq!(row, limit(7_999_999_999_999_999_999, 8_000_000_000_007_211_999));
        assert_eq!(Row::of(&row), Some(command));
        assert_eq!(host.pattern(), "^Max file locks  *7..................  *8000000000007...... ");
    }

    #[test]
    fn the_limits_of_others_are_no_rows() {
        assert_eq!(Row::of(&limit(None, None)), Some(Row::default()));
        for other in [
            limit(None, 8_000_000_000_007_211_999),
            limit(7_999_999_999_999_999_999, None),
            limit(1000, 1000),
            limit(7, 8),
            limit(7_999_999_999_999_999_999, 8_900_000_000_007_211_999),
            limit(7_999_999_999_999_999_999, u64::MAX - 1),
        ] {
            assert_eq!(Row::of(&other), None, "{other:?}");
        }
    }

    #[test]
    fn there_is_room_for_a_host_below_a_kept_command_of_another_one() {
        let mut row = Row::default();
        for random in [u128::MAX, 5] {
            row = row.host(random).unwrap().below(80).unwrap().below(80).unwrap();
        }
        assert_eq!((row.0.len(), row.host(1)), (36, None));
    }

    proptest! {
        // Whatever is below one is a lower limit, and below no other one.
        #[test]
        fn what_is_below_one_is_below_no_other(
            random in any::<u128>(),
            (one, other, below) in (any::<u64>(), any::<u64>(), any::<u64>()),
        ) {
            let host = Row::default().host(random).unwrap();
            let (one, other) = (host.below(one).unwrap(), host.below(other).unwrap());
            let below = one.below(below).unwrap();
            prop_assert!(below.is_below(&one) && below.is_below(&host) && !one.is_below(&below));
            prop_assert_eq!(below.is_below(&other), one == other);
            prop_assert!(below.limit().maximum <= one.limit().maximum);
            prop_assert!(below.limit().current < below.limit().maximum);
            prop_assert_eq!(Row::of(&below.limit()), Some(below));
        }
    }
}
