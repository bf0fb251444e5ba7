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
const DIGITS_PER_LIMIT: usize = 18;

/// The first digit of the hard limit, and of the soft limit, which must be smaller.
const HARD_PREFIX: char = '8';
const SOFT_PREFIX: char = '7';

/// How many random digits identify a host.
const HOST_DIGITS: u32 = 12;

/// How many digits the number of a child tag has at most; larger numbers wrap around.
const MAX_CHILD_DIGITS: u32 = 8;

/// The digits of a tag, each from 0 to 8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RlimitTag(String);

impl RlimitTag {
    /// Decodes an rlimit. Returns a tag without digits for an unlimited rlimit, and `None` for a
    /// limit that was set for another purpose.
    pub(super) fn from_rlimit(limit: &Rlimit) -> Option<Self> {
        let (hard, soft) = match (limit.maximum, limit.current) {
            (None, None) => return Some(Self::default()),
            (hard, soft) => (hard?.to_string(), soft?.to_string()),
        };
        let digits = [hard.strip_prefix(HARD_PREFIX)?, soft.strip_prefix(SOFT_PREFIX)?];
        let own = digits.concat().trim_end_matches('9').to_owned();
        let is_row =
            digits.iter().all(|digits| digits.len() == DIGITS_PER_LIMIT) && !own.contains('9');
        is_row.then_some(Self(own))
    }

    /// Derives the tag of a host; `None` when the digits are used up.
    pub(super) fn derive_host(&self, random: u128) -> Option<Self> {
        self.append_digits(to_base_nine(random % 9_u128.pow(HOST_DIGITS), HOST_DIGITS as usize))
    }

    /// Derives the child tag with this number; `None` when the digits are used up.
    pub(super) fn derive_child(&self, number: u64) -> Option<Self> {
        let number = to_base_nine((number % 9_u64.pow(MAX_CHILD_DIGITS)).into(), 1);
        // The length prefix keeps a number from being a prefix of another one.
        self.append_digits(format!("{}{number}", number.len()))
    }

    fn append_digits(&self, more: String) -> Option<Self> {
        let longer = self.0.clone() + &more;
        (longer.len() <= 2 * DIGITS_PER_LIMIT).then_some(Self(longer))
    }

    /// Returns whether this tag equals `other` or is derived from it.
    pub(super) fn is_same_or_below(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Returns the rlimit to set in a child with this tag.
    pub(super) fn to_rlimit(&self) -> Rlimit {
        let row = format!("{:9<1$}", self.0, 2 * DIGITS_PER_LIMIT);
        let (hard, soft) = row.split_at(DIGITS_PER_LIMIT);
        let number = |first, rest: &str| format!("{first}{rest}").parse().ok();
        Rlimit { current: number(SOFT_PREFIX, soft), maximum: number(HARD_PREFIX, hard) }
    }

    /// Returns a pattern for `grep` that matches `/proc/*/limits` of all processes with this tag
    /// or one derived from it.
    pub(crate) fn grep_pattern(&self) -> String {
        let row = format!("{:.<1$}", self.0, 2 * DIGITS_PER_LIMIT);
        let (hard, soft) = row.split_at(DIGITS_PER_LIMIT);
        format!("^Max file locks  *{SOFT_PREFIX}{soft}  *{HARD_PREFIX}{hard} ")
    }
}

/// Formats `number` in base nine with at least `least` digits.
fn to_base_nine(mut number: u128, least: usize) -> String {
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
        let host = RlimitTag::default().derive_host(7).unwrap();
        let command = host.derive_child(10).unwrap();
        assert_eq!(command.0, "000000000007211");
        let row = command.to_rlimit();
        assert_eq!(row, limit(7_999_999_999_999_999_999, 8_000_000_000_007_211_999));
        assert_eq!(RlimitTag::from_rlimit(&row), Some(command));
        assert_eq!(
            host.grep_pattern(),
            "^Max file locks  *7..................  *8000000000007...... "
        );
    }

    #[test]
    fn the_limits_of_others_are_no_rows() {
        assert_eq!(RlimitTag::from_rlimit(&limit(None, None)), Some(RlimitTag::default()));
        for other in [
            limit(None, 8_000_000_000_007_211_999),
            limit(7_999_999_999_999_999_999, None),
            limit(1000, 1000),
            limit(7, 8),
            limit(7_999_999_999_999_999_999, 8_900_000_000_007_211_999),
            limit(7_999_999_999_999_999_999, u64::MAX - 1),
        ] {
            assert_eq!(RlimitTag::from_rlimit(&other), None, "{other:?}");
        }
    }

    #[test]
    fn there_is_room_for_a_host_below_a_kept_command_of_another_one() {
        let mut row = RlimitTag::default();
        for random in [u128::MAX, 5] {
            row = row
                .derive_host(random)
                .unwrap()
                .derive_child(80)
                .unwrap()
                .derive_child(80)
                .unwrap();
        }
        assert_eq!((row.0.len(), row.derive_host(1)), (36, None));
    }

    proptest! {
        // A derived tag is a lower limit, and is derived from no sibling.
        #[test]
        fn what_is_below_one_is_below_no_other(
            random in any::<u128>(),
            (one, other, below) in (any::<u64>(), any::<u64>(), any::<u64>()),
        ) {
            let host = RlimitTag::default().derive_host(random).unwrap();
            let (one, other) = (host.derive_child(one).unwrap(), host.derive_child(other).unwrap());
            let below = one.derive_child(below).unwrap();
            prop_assert!(below.is_same_or_below(&one) && below.is_same_or_below(&host) && !one.is_same_or_below(&below));
            prop_assert_eq!(below.is_same_or_below(&other), one == other);
            prop_assert!(below.to_rlimit().maximum <= one.to_rlimit().maximum);
            prop_assert!(below.to_rlimit().current < below.to_rlimit().maximum);
            prop_assert_eq!(RlimitTag::from_rlimit(&below.to_rlimit()), Some(below));
        }
    }
}
