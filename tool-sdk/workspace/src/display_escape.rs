//! Escapes file names for display, so that a crafted name cannot forge the text around it.
//!
//! **Invariant:** names are escaped for display only, never before they are compared.

use std::borrow::Cow;

/// Escapes the characters of a file name or path that would break or reorder the line in which
/// it is shown.
///
/// Control characters, line separators of any kind, bidirectional controls, byte order marks and
/// invisible tags become `\n` or `\u{..}`. Everything else is kept, so that the model can send
/// the name back as it read it: no-break spaces and joiners occur in many names.
///
/// # Examples
///
/// ```
/// use tool_sdk::escape_for_display;
///
/// assert_eq!(escape_for_display("a\n(End of file)"), r"a\n(End of file)");
/// assert_eq!(escape_for_display("gnp\u{202e}txt.sh"), r"gnp\u{202e}txt.sh");
/// assert_eq!(escape_for_display("grün.rs"), "grün.rs");
/// ```
#[must_use]
pub fn escape_for_display(name: &str) -> Cow<'_, str> {
    if !name.contains(is_misleading) {
        return Cow::Borrowed(name);
    }
    let escaped = name.chars().fold(String::with_capacity(name.len() + 8), |mut out, c| {
        if is_misleading(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        out
    });
    Cow::Owned(escaped)
}

/// Returns whether a character changes how the text around it is displayed.
fn is_misleading(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}' | '\u{2029}'
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    // PR2, PA6
    #[test]
    fn escapes_control_and_bidi_characters() {
        for (name, expected) in [
            ("a\n(End of file)\x1b[2J", r"a\n(End of file)\u{1b}[2J"),
            ("a\u{85}b\u{2028}c\u{2029}", r"a\u{85}b\u{2028}c\u{2029}"),
            ("rtl\u{202e}gnp.txt\u{2066}", r"rtl\u{202e}gnp.txt\u{2066}"),
            ("a\u{e0041}\u{feff}", r"a\u{e0041}\u{feff}"),
            // Unchanged, because an escaped name would no longer name the file.
            (r"a\nb", r"a\nb"),
            (
                "At 3\u{202f}PM\u{a0}大きさ 👨\u{200d}👩 می\u{200c}خواهم",
                "At 3\u{202f}PM\u{a0}大きさ 👨\u{200d}👩 می\u{200c}خواهم",
            ),
        ] {
            assert_eq!(escape_for_display(name), expected);
        }
    }
}
