//! Maps typographic characters to the ASCII characters of a keyboard.

use std::borrow::Cow;

/// Returns the ASCII character for a typographic dash, quote or space; any other stays itself.
///
/// The mapping is one to one, so that positions in the text can be mapped back.
pub(crate) fn ascii_equivalent(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Returns `text` with ASCII dashes, quotes and spaces.
pub(crate) fn with_ascii_punctuation(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| ascii_equivalent(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(ascii_equivalent).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_typographic_characters_to_ascii() {
        assert_eq!(
            with_ascii_punctuation("\u{201c}a\u{201d}\u{a0}\u{2014} b\u{2019}s"),
            "\"a\" - b's"
        );
    }

    #[test]
    fn keeps_other_characters() {
        assert!(matches!(with_ascii_punctuation("grün … ½"), Cow::Borrowed("grün … ½")));
    }
}
