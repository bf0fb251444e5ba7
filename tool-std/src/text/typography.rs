//! Characters that a typesetter writes where a keyboard has a plain one.

use std::borrow::Cow;

/// The ASCII character for a typographic dash, quote or space; any other stays itself.
///
/// One character stands for one, so that places in the text can be found again.
pub(crate) fn plain(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// `text` with [`plain`] characters.
pub(crate) fn plain_text(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| plain(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(plain).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_quotes_and_spaces_become_plain() {
        assert_eq!(plain_text("\u{201c}a\u{201d}\u{a0}\u{2014} b\u{2019}s"), "\"a\" - b's");
    }

    #[test]
    fn other_characters_stay() {
        assert!(matches!(plain_text("grün … ½"), Cow::Borrowed("grün … ½")));
    }
}
