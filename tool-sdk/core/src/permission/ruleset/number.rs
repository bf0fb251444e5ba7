//! Compares numbers in rules by their value, regardless of their spelling.
//!
//! **Invariant:** a rule that allows a number never rounds.

use serde_json::Number;

use crate::permission::Action;

/// Up to here, a number with a fraction or an exponent is stored exactly as it was sent.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Whether a pattern is the same number.
pub(super) fn is_same_number(pattern: &str, number: &Number, action: Action) -> bool {
    let Some(wanted) = Decimal::parse(pattern) else { return false };
    let is_equal = Decimal::parse(&number.to_string()).as_ref() == Some(&wanted);
    match number.as_f64().filter(|_| number.is_f64()) {
        None => is_equal,
        // The number may have lost digits while it was parsed.
        Some(lossy) if action == Action::Allow => is_equal && lossy.abs() < MAX_EXACT,
        Some(lossy) => is_equal || pattern.parse() == Ok(lossy),
    }
}

/// Returns the integer that was sent with a fraction or an exponent, as some models do.
pub(super) fn to_whole_number(number: &Number) -> Option<String> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    (value.fract() == 0.0).then(|| format!("{value:.0}"))
}

/// A number in its canonical form: its digits without zeros at the ends, and the power of ten of
/// the last digit.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Returns `None` when the text is not a number.
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, i64::from(exponent.parse::<i32>().ok()?)),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let significant = digits.trim_end_matches('0');
        let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
        let behind = i64::try_from(fraction.len()).ok()?;
        let significant = significant.trim_start_matches('0');
        Some(match significant {
            "" => Self { is_negative: false, digits: String::new(), exponent: 0 },
            digits => {
                let exponent = exponent - behind + zeros;
                Self { is_negative, digits: digits.to_owned(), exponent }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(pattern: &str, sent: &str, action: Action) -> bool {
        is_same_number(pattern, &serde_json::from_str(sent).unwrap(), action)
    }

    // P1: the tool gets a value, and the rule compares the value.
    #[test]
    fn a_number_is_the_same_however_it_is_spelled() {
        for (pattern, sent) in [
            ("5", "5"),
            ("5", "5.0"),
            ("5", "5e0"),
            ("5", "50E-1"),
            ("5.0", "5"),
            ("5e0", "5"),
            ("005", "5"),
            ("100", "1e2"),
            ("0.1", "1e-1"),
            ("-0", "0"),
            ("0", "-0.0"),
            ("-2.50", "-2.5"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            for action in [Action::Allow, Action::Ask, Action::Deny] {
                assert!(compare(pattern, sent, action), "{action} {pattern} {sent}");
            }
        }
    }

    #[test]
    fn another_number_is_another_one() {
        for (pattern, sent) in [
            ("5", "6"),
            ("5", "-5"),
            ("5", "50"),
            ("5", "0.5"),
            ("9007199254740993", "9007199254740992"),
            ("9007199254740992", "9007199254740993"),
            ("", "0"),
            (".", "0"),
            ("5.", "5"),
            ("five", "5"),
            ("1e99999999999", "1"),
        ] {
            for action in [Action::Allow, Action::Ask, Action::Deny] {
                assert!(!compare(pattern, sent, action), "{action} {pattern} {sent}");
            }
        }
    }

    #[test]
    fn what_may_have_been_rounded_is_forbidden_and_not_allowed() {
        for (pattern, sent) in
            [("9007199254740993", "9007199254740993.0"), ("100000000000000000001", "1e20")]
        {
            assert!(compare(pattern, sent, Action::Deny), "{pattern} {sent}");
            assert!(!compare(pattern, sent, Action::Allow), "{pattern} {sent}");
        }
        assert!(!compare("100000000000000000000", "100000000000000000001", Action::Allow));
    }
}
