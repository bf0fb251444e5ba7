//! Strips ANSI escape sequences and control characters from program output.

/// Removes escape sequences and control characters; each line ends in `\n`.
pub(super) fn strip_ansi(text: &str) -> String {
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

/// Skips what follows an escape character.
fn skip_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next_if(|c| ('\u{20}'..='\u{7e}').contains(c)) {
        // CSI: parameters and a final byte.
        Some('[') => {
            while rest.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
            rest.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        // OSC and other string sequences, which do not span lines.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while rest.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
            if rest.next_if_eq(&'\u{1b}').is_some() {
                rest.next_if_eq(&'\\');
            }
        }
        // Sequences with intermediate bytes, such as character set selection.
        Some(' '..='/') => {
            while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
            rest.next_if(|c| ('0'..='~').contains(c));
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
            ("\u{1b}%Gx\u{1b}$(Cy\u{1b}(ä", "xyä"),
            ("a\0\u{8}b\u{7f}", "ab"),
            ("end\u{1b}", "end"),
            ("\u{1b}[1", ""),
            ("\u{1b}]open\nnext", "\nnext"),
        ] {
            assert_eq!(strip_ansi(text), expected, "{text:?}");
        }
    }
}
