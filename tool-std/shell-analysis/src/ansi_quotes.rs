//! Decodes the backslash escapes of ANSI-C quotes (`$'..'`).
//!
//! **Invariant:** an escape whose meaning depends on the bash version or the locale is unknown.

/// Decodes the escape that follows a backslash. Returns the character, if it is known, and the
/// length of the escape in bytes. No escape ends the quotes.
pub(super) fn decode_escape(rest: &str) -> (Option<char>, usize) {
    let Some(first) = rest.chars().next() else { return (None, 0) };
    let digits = |from: usize, most: usize, radix: u32| {
        let digits = rest[from..].chars().take(most).take_while(|c| c.is_digit(radix));
        let end = from + digits.count();
        // NUL and non-ASCII characters differ between versions of bash.
        let known = u32::from_str_radix(&rest[from..end], radix).ok();
        (known.and_then(char::from_u32).filter(|c| matches!(c, '\u{1}'..='\u{7f}')), end)
    };
    let (known, length) = match first {
        'n' => (Some('\n'), 1),
        't' => (Some('\t'), 1),
        '\\' | '\'' | '"' | '?' => (Some(first), 1),
        '0'..='7' => digits(0, 3, 8),
        'x' => digits(1, 2, 16),
        'u' => digits(1, 4, 16),
        'U' => digits(1, 8, 16),
        _ => (None, first.len_utf8()),
    };
    (known.filter(|c| !c.is_control() || matches!(c, '\n' | '\t')), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_escapes_as_bash_or_not_at_all() {
        for (rest, expected) in [
            ("x2eenv", (Some('.'), 3)),
            ("x2", (None, 2)),
            ("056env", (Some('.'), 3)),
            ("0561", (Some('.'), 3)),
            ("160rod", (Some('p'), 3)),
            ("u002eenv", (Some('.'), 5)),
            ("U0000002eenv", (Some('.'), 9)),
            ("u2e/", (Some('.'), 3)),
            ("'x", (Some('\''), 1)),
            ("\\x", (Some('\\'), 1)),
            ("n", (Some('\n'), 1)),
            ("x{2e}", (None, 1)),
            ("xg", (None, 1)),
            ("xc3", (None, 3)),
            ("u00e9", (None, 5)),
            ("ud800", (None, 5)),
            ("0", (None, 1)),
            ("cA", (None, 1)),
            ("e[0m", (None, 1)),
            ("ä", (None, 2)),
            ("", (None, 0)),
        ] {
            assert_eq!(decode_escape(rest), expected, "{rest}");
        }
    }
}
