//! Cuts a long line to an excerpt around a match.

/// How many of ten characters of the excerpt stand before the match.
const LEAD: usize = 2;

/// Returns at most `max` characters of `line` around the byte `at`; `…` marks what was cut.
///
/// Only the bytes near `at` are decoded, however long the line is.
pub(crate) fn excerpt_around(line: &[u8], at: usize, max: usize) -> String {
    if line.len() <= max {
        return String::from_utf8_lossy(line).into_owned();
    }
    // A character has at most four bytes. The first one of the window may be incomplete, but is not
    // shown.
    let reach = 4 * (max + 1);
    let at = at.min(line.len());
    let (from, to) = (at.saturating_sub(reach), line.len().min(at + reach));
    let before = String::from_utf8_lossy(&line[from..at]);
    let after = String::from_utf8_lossy(&line[at..to]);
    let (before_len, after_len) = (before.chars().count(), after.chars().count());

    let lead = before_len.min(max * LEAD / 10);
    let tail = after_len.min(max - lead);
    let lead = before_len.min(max - tail);

    let mut shown = String::with_capacity(4 * max);
    if from > 0 || lead < before_len {
        shown.push('…');
    }
    shown.extend(before.chars().skip(before_len - lead));
    shown.extend(after.chars().take(tail));
    if to < line.len() || tail < after_len {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, at: usize, expected: &str) {
        assert_eq!(excerpt_around(line.as_bytes(), at, 10), expected);
    }

    #[test]
    fn keeps_a_short_line() {
        check("0123456789", 9, "0123456789");
        check("äöüäöüäöüä", 0, "äöüäöüäöüä");
    }

    #[test]
    fn keeps_the_match_in_the_excerpt() {
        check("0123456789abcdefghijklmnopqrstuvwxyz", 0, "0123456789…");
        check("0123456789abcdefghijklmnopqrstuvwxyz", 20, "…ijklmnopqr…");
        check("0123456789abcdefghijklmnopqrstuvwxyz", 35, "…qrstuvwxyz");
        check("0123456789ab", 2, "0123456789…");
    }

    #[test]
    fn cuts_fall_between_characters() {
        let line = "é".repeat(1000);
        check(&line, 1000, &format!("…{}…", "é".repeat(10)));
        let torn = [b"\xff".repeat(100), b"x".to_vec()].concat();
        assert_eq!(excerpt_around(&torn, 100, 3), format!("…{}x", "\u{fffd}".repeat(2)));
    }
}
