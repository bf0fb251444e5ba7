//! Output of programs as plain text: without what only means something to a terminal.

/// `text` without escape sequences and control characters; each line ends in `\n`.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => plain.push('\n'),
            '\n' | '\t' => plain.push(c),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

/// The longest start of a sequence that is waited for.
const MOST_BEGUN: usize = 256;

/// How many bytes at the end are the start of a character, of a line end or of a sequence, whose
/// rest has not come.
pub(super) fn begun(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(MOST_BEGUN);
    let sequence = bytes[start..].iter().rposition(|&byte| byte == 0x1b).map(|at| start + at);
    match sequence {
        Some(at) if is_begun(&bytes[at + 1..]) => bytes.len() - at,
        _ if bytes.ends_with(b"\r") => 1,
        _ => begun_char(bytes),
    }
}

/// Whether what follows an escape character is not all of its sequence.
fn is_begun(rest: &[u8]) -> bool {
    let Some((first, rest)) = rest.split_first() else { return true };
    match first {
        b'[' => rest.iter().all(|byte| (0x20..=0x3f).contains(byte)),
        b']' | b'P' | b'_' | b'^' | b'X' => !rest.iter().any(|byte| matches!(byte, 0x7 | b'\n')),
        b'(' | b')' => rest.is_empty(),
        _ => false,
    }
}

fn begun_char(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let lead = last.iter().rposition(|byte| byte & 0xc0 == 0xc0);
    lead.map_or(0, |at| match str::from_utf8(&last[at..]) {
        Err(error) if error.error_len().is_none() => last.len() - at,
        _ => 0,
    })
}

/// Skips what follows an escape character.
fn skip_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next_if(|c| ('\u{20}'..='\u{7e}').contains(c)) {
        // Parameters, and one letter that says what to do.
        Some('[') => {
            while rest.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
            rest.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        // A text for the terminal, which does not go over lines.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while rest.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
            if rest.next_if_eq(&'\u{1b}').is_some() {
                rest.next_if_eq(&'\\');
            }
        }
        Some('(' | ')') => {
            rest.next_if(|c| c.is_ascii_alphanumeric());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CH8
    #[test]
    fn only_text_is_left() {
        for (text, expected) in [
            ("a\tb\nc", "a\tb\nc"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("\u{1b}(Bx\u{1b}=y", "xy"),
            ("a\0\u{8}b\u{7f}", "ab"),
            ("end\u{1b}", "end"),
            ("\u{1b}[1", ""),
            ("\u{1b}]open\nnext", "\nnext"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
    // F138
    #[test]
    fn what_has_begun_waits_for_its_end() {
        for (bytes, expected) in [
            (&b"ab"[..], 0),
            ("ä".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xf0\x9f\x98", 3),
            (b"\xff", 0),
            (b"a\r", 1),
            (b"a\r\n", 0),
            (b"a\x1b", 1),
            (b"a\x1b[1;3", 5),
            (b"a\x1b[1;31m", 0),
            (b"a\x1b[31mb\xc3", 1),
            (b"\x1b]0;ti", 6),
            (b"\x1b]0;title\x07", 0),
            (b"\x1b]0;title\n", 0),
            (b"\x1b(", 2),
            (b"\x1b(B", 0),
            (b"\x1b=", 0),
        ] {
            assert_eq!(begun(bytes), expected, "{bytes:?}");
        }
        let endless = [b"\x1b]".as_slice(), &[b'x'; MOST_BEGUN]].concat();
        assert_eq!(begun(&endless), 0);
    }
}
