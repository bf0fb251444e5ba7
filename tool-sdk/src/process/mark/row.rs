//! Encodes a process tag as an rlimit.
//!
//! A process can leave its parents, session and environment, but its descendants inherit its
//! rlimits, and other processes of the user can read them. Linux has not enforced `RLIMIT_LOCKS`
//! since 2.4, so the two numbers of that limit can hold a tag.
//!
//! The tag is a string of base-nine digits (0 to 8), padded with nines; the hard limit holds its
//! first half and the soft limit its second. A child tag appends digits to its parent's. That
//! replaces nines and makes the number smaller, so an unprivileged process, which may only lower
//! its limits, can set it.
//!
//! **Invariant:** of two tags with the same parent, neither is a prefix of the other.

use rustix::process::Rlimit;

/// How many digits each number holds after the one that distinguishes it from other limits.
const ROOM: usize = 18;

/// The first digit of the hard limit, and of the soft limit, which must be smaller.
const HARD: char = '8';
const SOFT: char = '7';

/// How many random digits identify a host.
const HOST: u32 = 12;

/// How many digits the number of a child tag has at most; larger numbers wrap around.
const LONGEST: u32 = 8;

/// The digits of a tag, each from 0 to 8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::process) struct Row(String);

impl Row {
    /// Decodes an rlimit. Returns a tag without digits for an unlimited rlimit, and `None` for a
    /// limit that was set for another purpose.
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

    /// Derives the tag of a host; `None` when the digits are used up.
    pub(super) fn host(&self, random: u128) -> Option<Self> {
        self.and(digits(random % 9_u128.pow(HOST), HOST as usize))
    }

    /// Derives the child tag with this number; `None` when the digits are used up.
    pub(super) fn below(&self, number: u64) -> Option<Self> {
        let number = digits((number % 9_u64.pow(LONGEST)).into(), 1);
        // The length prefix keeps a number from being a prefix of another one.
        self.and(format!("{}{number}", number.len()))
    }

    fn and(&self, more: String) -> Option<Self> {
        let longer = self.0.clone() + &more;
        (longer.len() <= 2 * ROOM).then_some(Self(longer))
    }

    /// Returns whether this tag equals `other` or is derived from it.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Returns the rlimit to set in a child with this tag.
    pub(super) fn limit(&self) -> Rlimit {
        let row = format!("{:9<1$}", self.0, 2 * ROOM);
        let (hard, soft) = row.split_at(ROOM);
        let number = |first, rest: &str| format!("{first}{rest}").parse().ok();
        Rlimit { current: number(SOFT, soft), maximum: number(HARD, hard) }
    }

    /// Returns a pattern for `grep` that matches `/proc/*/limits` of all processes with this tag
    /// or one derived from it.
    pub(in crate::process) fn pattern(&self) -> String {
        let row = format!("{:.<1$}", self.0, 2 * ROOM);
        let (hard, soft) = row.split_at(ROOM);
        format!("^Max file locks  *{SOFT}{soft}  *{HARD}{hard} ")
    }
}

/// Formats `number` in base nine with at least `least` digits.
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
        // A derived tag is a lower limit, and is derived from no sibling.
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
