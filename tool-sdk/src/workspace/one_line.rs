//! Names in sentences: whoever named a file says nothing else with that.
//!
//! **Invariant:** a name is changed where it is shown only, and never where it is compared.

use std::borrow::Cow;

/// A name or a path as it stands in a sentence or a list: on its line, and in its order,
/// whatever characters somebody put into it.
///
/// Controls, line ends of any kind, what turns the direction of writing, and invisible tags
/// become escapes. All else stays, so that a name can be sent as it was read: blanks without
/// a break and joined letters are parts of many names.
///
/// # Examples
///
/// ```
/// use tool_sdk::one_line;
///
/// assert_eq!(one_line("a\n(End of file)"), r"a\n(End of file)");
/// assert_eq!(one_line("gnp\u{202e}txt.sh"), r"gnp\u{202e}txt.sh");
/// assert_eq!(one_line("grün.rs"), "grün.rs");
/// ```
#[must_use]
pub fn one_line(name: &str) -> Cow<'_, str> {
    if !name.contains(misleads) {
        return Cow::Borrowed(name);
    }
    let escaped = name.chars().fold(String::with_capacity(name.len() + 8), |mut out, c| {
        if misleads(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        out
    });
    Cow::Owned(escaped)
}

/// Whether a character changes how those around it are read, and has no part in a name.
fn misleads(c: char) -> bool {
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
    fn a_name_cannot_mislead() {
        for (name, expected) in [
            ("a\n(End of file)\x1b[2J", r"a\n(End of file)\u{1b}[2J"),
            ("a\u{85}b\u{2028}c\u{2029}", r"a\u{85}b\u{2028}c\u{2029}"),
            ("rtl\u{202e}gnp.txt\u{2066}", r"rtl\u{202e}gnp.txt\u{2066}"),
            ("a\u{e0041}\u{feff}", r"a\u{e0041}\u{feff}"),
            // These lead back to the file only as they are.
            (r"a\nb", r"a\nb"),
            (
                "At 3\u{202f}PM\u{a0}大きさ 👨\u{200d}👩 می\u{200c}خواهم",
                "At 3\u{202f}PM\u{a0}大きさ 👨\u{200d}👩 می\u{200c}خواهم",
            ),
        ] {
            assert_eq!(one_line(name), expected);
        }
    }
}
