//! Numbers as they were written.
//!
//! JSON Schema calls a number an integer by its value: `5.0`, `50e-1` and `-0` are integers.
//! Decoding depends on how a number is written. This module converts between the two, exactly and
//! for any width, without floating-point numbers.
//!
//! **Invariant:** calls whose integers are written as such do not run this code.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use serde_json::Number;

/// The maximum number of digits of an integer: more than any integer type has.
const MAX_DIGITS: usize = 40;

/// A number as it was written, and as serde_json parses it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonNumber<'a> {
    text: Cow<'a, str>,
    value: Number,
}

impl<'a> JsonNumber<'a> {
    pub(super) fn new(text: &'a str, value: Number) -> Self {
        Self { text: text.into(), value }
    }

    pub(super) fn into_owned<'b>(self) -> JsonNumber<'b> {
        JsonNumber { text: Cow::Owned(self.text.into_owned()), value: self.value }
    }

    /// Returns the number as it was written.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the number as serde_json parses it; whole numbers become integers if they fit.
    pub(super) fn to_number(&self) -> Number {
        let whole = whole_number(&self.text).and_then(|digits| {
            let number: Number = serde_json::from_str(&digits).ok()?;
            (!number.is_f64()).then_some(number)
        });
        whole.unwrap_or_else(|| self.value.clone())
    }

    pub(super) fn as_f64(&self) -> Option<f64> {
        self.value.as_f64()
    }

    /// Returns the value of a whole number that fits into an `i128`.
    pub(super) fn as_i128(&self) -> Option<i128> {
        whole_number(&self.text)?.parse().ok()
    }

    pub(super) fn is_whole(&self) -> bool {
        NumberParts::parse(&self.text).is_some_and(|parts| parts.is_whole())
    }
}

/// Returns the digits of the whole number in `text`; `None` for fractions, and for numbers that
/// fit no integer type.
fn whole_number(text: &str) -> Option<Cow<'_, str>> {
    match text.contains(['.', 'e', 'E']) {
        false if text == "-0" => Some(Cow::Borrowed("0")),
        false => Some(Cow::Borrowed(text)),
        true => NumberParts::parse(text)?.to_digits().map(Cow::Owned),
    }
}

/// Returns `text` with its whole numbers as digits; `None` if that changes nothing.
pub(super) fn with_whole_numbers(text: &str) -> Option<String> {
    let (mut spelt, mut copied) = (String::new(), 0);
    let at = Cell::new(0);
    while let Some(place) = next_number(text, &at) {
        let written = &text[place.clone()];
        if let Some(digits) = whole_number(written).filter(|digits| digits != written) {
            spelt.push_str(&text[copied..place.start]);
            spelt.push_str(&digits);
            copied = place.end;
        }
    }
    (copied > 0).then(|| spelt + &text[copied..])
}

/// Returns the next number of a JSON text at or behind `at`, and moves `at` behind it.
pub(super) fn next_number(text: &str, at: &Cell<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut here = at.get();
    while let Some(byte) = bytes.get(here) {
        match byte {
            b'"' => here = end_of_string(bytes, here),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = bytes[here..].iter().take_while(|byte| is_part(byte)).count();
                at.set(here + length);
                return Some(here..here + length);
            }
            _ => here += 1,
        }
    }
    at.set(here);
    None
}

/// Returns the end of the string that begins at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The parts of a number: `-12.50e3` is minus, 1250 and 5 digits before the point.
struct NumberParts<'a> {
    is_negative: bool,
    /// The digits before and after the point.
    digits: [&'a str; 2],
    /// The number of digits before the point after the exponent is applied.
    point_position: i64,
}

impl<'a> NumberParts<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let point = i64::try_from(before.len()).ok()?.checked_add(exponent.parse().ok()?)?;
        Some(Self { is_negative, digits: [before, behind], point_position: point })
    }

    fn digits(&self) -> impl DoubleEndedIterator<Item = char> + use<'a> {
        let [before, behind] = self.digits;
        before.chars().chain(behind.chars())
    }

    fn len(&self) -> usize {
        self.digits.iter().map(|digits| digits.len()).sum()
    }

    /// Returns the number of digits up to the last that is not 0.
    fn significant_digits(&self) -> usize {
        self.len() - self.digits().rev().take_while(|digit| *digit == '0').count()
    }

    fn is_whole(&self) -> bool {
        i64::try_from(self.significant_digits())
            .is_ok_and(|digits| digits <= self.point_position.max(0))
    }

    fn to_digits(&self) -> Option<String> {
        if !self.is_whole() {
            return None;
        }
        if self.significant_digits() == 0 {
            return Some("0".to_owned());
        }
        let zeros = self.digits().take_while(|digit| *digit == '0').count();
        let point = usize::try_from(self.point_position).ok()?;
        if point - zeros > MAX_DIGITS {
            return None;
        }
        let sign = if self.is_negative { "-" } else { "" };
        let digits = self.digits().chain(std::iter::repeat('0'));
        Some(sign.chars().chain(digits.take(point).skip(zeros)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_goes_by_the_value() {
        for (text, expected) in [
            ("5", Some("5")),
            ("-0", Some("0")),
            ("0.0", Some("0")),
            ("-0e9", Some("0")),
            ("5.0", Some("5")),
            ("1e0", Some("1")),
            ("-12.50e3", Some("-12500")),
            ("50e-1", Some("5")),
            ("0.05e2", Some("5")),
            ("1e20", Some("100000000000000000000")),
            (
                "3.40282366920938463463374607431768211455e38",
                Some("340282366920938463463374607431768211455"),
            ),
            ("5.5", None),
            ("5e-1", None),
            ("1e-400", None),
            ("1e41", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(whole_number(text).as_deref(), expected, "{text}");
        }
        assert!(JsonNumber::new("1e300", 1.into()).is_whole());
        assert!(!JsonNumber::new("1.5", 1.into()).is_whole());
    }

    #[test]
    fn only_numbers_are_written_anew() {
        for (text, expected) in [
            ("5.0", Some("5")),
            (
                r#"[1, 2.0,{"3.0":"4.0\"5.0", "a" : -0}]"#,
                Some(r#"[1, 2,{"3.0":"4.0\"5.0", "a" : 0}]"#),
            ),
            (r#"[1, 2.5, "6.0"]"#, None),
            (r#""5.0"#, None),
            (r#""\"#, None),
        ] {
            assert_eq!(with_whole_numbers(text).as_deref(), expected, "{text}");
        }
    }
}
