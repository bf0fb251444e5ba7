//! Makes invisible characters visible: a character that would not show, or that would change how
//! its neighbours show, is written as an escape.
//!
//! Nothing is left out, and a backslash is doubled, so that each visible text belongs to one
//! original.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Control, format, private-use and unassigned characters; blanks other than the space; characters
/// without width; two symbols that look like a blank.
const HIDDEN: &str =
    r"\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\x{2800}\x{FFFC}--\x20";

/// Characters that look like those of which the rows of a prompt are made: bars like the frame,
/// full-width brackets and letters, and the letters of mathematics.
const LOOKALIKE: &str = r"\x{1C0}\x{2223}\x{23B8}\x{23B9}\x{23D0}\x{2502}\x{2503}\x{2551}\x{2588}-\x{2590}\x{2758}-\x{275A}\x{2C60}\x{FF1E}\x{FF21}-\x{FF3B}\x{FF3D}\x{FF41}-\x{FF5A}\x{FF5C}\x{FFE8}\x{1D400}-\x{1D7FF}";

static INVISIBLE: LazyLock<Regex> = LazyLock::new(|| compile_regex(&format!(r"[\\{HIDDEN}]")));
static SPECIAL: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(&format!(r"[\\{LOOKALIKE}{HIDDEN}]")));
static SPECIAL_IN_QUOTES: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(&format!(r"['\\{LOOKALIKE}{HIDDEN}]")));

/// One character of visible text.
static PIECE: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"(?s)\\u\{[0-9a-f]+\}|\\x[0-9a-f]{2}|\\n\n|\\.|."));

pub(super) fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is fixed")
}

/// Returns `text` with invisible characters and look-alikes escaped. A line break becomes `\n` and a line break.
pub(super) fn make_visible(text: &str) -> Cow<'_, str> {
    SPECIAL.replace_all(text, escape_match)
}

/// Like [`make_visible`], for a sentence that contains names made visible before: their numeric
/// escapes stay as they are.
pub(super) fn make_sentence_visible(text: &str) -> Cow<'_, str> {
    static SPECIAL_OR_SPELT: LazyLock<Regex> =
        LazyLock::new(|| compile_regex(&format!(r"\\u\{{[0-9a-f]+\}}|[\\{LOOKALIKE}{HIDDEN}]")));
    SPECIAL_OR_SPELT.replace_all(text, |found: &Captures<'_>| match &found[0] {
        spelt if spelt.starts_with(r"\u") => spelt.to_owned(),
        _ => escape_match(found),
    })
}

/// Escapes invisible characters, but not line ends, tabs and backslashes, so that a model reads the
/// text as it was meant.
pub fn spell_hidden(text: &str) -> Cow<'_, str> {
    INVISIBLE.replace_all(text, |found: &Captures<'_>| match &found[0] {
        plain @ ("\\" | "\n" | "\t") => plain.to_owned(),
        _ => escape_match(found),
    })
}

/// Returns `text` in quotes, so that blanks at its ends are visible.
pub(super) fn quote_visible(text: &str) -> String {
    format!("'{}'", SPECIAL_IN_QUOTES.replace_all(text, escape_match))
}

/// Like [`quote_visible`], for a name that need not be valid Unicode.
pub(super) fn quote_os_visible(name: &OsStr) -> String {
    let mut out = String::from("'");
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        out += &SPECIAL_IN_QUOTES.replace_all(chunk.valid(), escape_match);
        for byte in chunk.invalid() {
            // No character has this form: those outside ASCII are written as `\u{..}`.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('\'');
    out
}

/// Splits a visible text into characters; an escape is one character.
pub(super) fn visible_chars(visible: &str) -> Vec<&str> {
    PIECE.find_iter(visible).map(|piece| piece.as_str()).collect()
}

/// Whether a piece is the escape of an invisible character or of a look-alike.
pub(super) fn is_escape(piece: &str) -> bool {
    matches!(piece.as_bytes(), [b'\\', b'u' | b'x' | b'r', ..])
}

/// Whether a piece is the escape of a look-alike.
pub(super) fn is_lookalike_escape(piece: &str) -> bool {
    static LOOKALIKES: LazyLock<Regex> =
        LazyLock::new(|| compile_regex(&format!("^[{LOOKALIKE}]$")));
    let digits = piece.strip_prefix(r"\u{").and_then(|rest| rest.strip_suffix('}'));
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let original = number.and_then(char::from_u32);
    original.is_some_and(|c| LOOKALIKES.is_match(c.encode_utf8(&mut [0; 4])))
}

/// Returns an upper bound of the columns that visible text takes: two for each character outside
/// ASCII, which some terminals draw as wide.
pub(super) fn max_columns(visible: &str) -> usize {
    visible.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

fn escape_match(found: &Captures<'_>) -> String {
    match &found[0] {
        "\\" => r"\\".to_owned(),
        "'" => r"\'".to_owned(),
        "\n" => "\\n\n".to_owned(),
        "\r" => r"\r".to_owned(),
        "\t" => r"\t".to_owned(),
        other => other.chars().map(escape_by_number).collect(),
    }
}

fn escape_by_number(c: char) -> String {
    match u32::from(c) {
        ascii @ ..0x80 => format!("\\x{ascii:02x}"),
        other => format!("\\u{{{other:x}}}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether a character may appear in a prompt.
    pub(crate) fn may_show(c: char) -> bool {
        static HIDDEN_CHAR: LazyLock<Regex> =
            LazyLock::new(|| compile_regex(&format!("[{HIDDEN}]")));
        c == '\n' || !HIDDEN_CHAR.is_match(c.encode_utf8(&mut [0; 4]))
    }

    #[test]
    fn what_does_not_show_is_spelt() {
        for (text, expected) in [
            ("status ", "'status '"),
            ("it's", r"'it\'s'"),
            ("a\nb", "'a\\n\nb'"),
            (r"a\nb", r"'a\\nb'"),
            ("a\tb\r", r"'a\tb\r'"),
            ("\x1b[2K\0\x7f", r"'\x1b[2K\x00\x7f'"),
            ("\u{85}\u{9b}", r"'\u{85}\u{9b}'"),
            ("a\u{202e}b\u{2066}\u{61c}", r"'a\u{202e}b\u{2066}\u{61c}'"),
            ("a\u{200b}\u{200d}\u{feff}\u{ad}b", r"'a\u{200b}\u{200d}\u{feff}\u{ad}b'"),
            ("\u{e0041}\u{fe0f}\u{e0100}\u{180b}", r"'\u{e0041}\u{fe0f}\u{e0100}\u{180b}'"),
            ("\u{e000}\u{ffff}\u{378}", r"'\u{e000}\u{ffff}\u{378}'"),
            ("\u{a0}\u{3000}\u{2028}\u{3164}", r"'\u{a0}\u{3000}\u{2028}\u{3164}'"),
            ("\u{2800}\u{fffc}", r"'\u{2800}\u{fffc}'"),
            ("größe 大きさ 😀", "'größe 大きさ 😀'"),
        ] {
            assert_eq!(quote_visible(text), expected);
        }
        assert_eq!(make_visible("it's a\\b\u{202e}"), r"it's a\\b\u{202e}");
        assert_eq!(
            make_sentence_visible("`\\u{1b}a\u{1b}` \\n\\u\n"),
            "`\\u{1b}a\\x1b` \\\\n\\\\u\\n\n"
        );
        assert_eq!(
            visible_chars("a\\\\\\n\n\\u{202e}\\x1bé"),
            ["a", r"\\", "\\n\n", r"\u{202e}", r"\x1b", "é"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_show_their_bytes() {
        use std::os::unix::ffi::OsStrExt;
        for (name, expected) in [
            (&b"a\xff\n"[..], "'a\\xff\\n\n'"),
            ("a\u{9b}".as_bytes(), r"'a\u{9b}'"),
            (b"\xc2", r"'\xc2'"),
        ] {
            assert_eq!(quote_os_visible(OsStr::from_bytes(name)), expected);
        }
    }

    /// Returns the original of a quoted text.
    fn unquote(quoted: &str) -> String {
        let inner = quoted.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap();
        visible_chars(inner)
            .into_iter()
            .map(|piece| match piece.strip_prefix('\\') {
                None => piece.to_owned(),
                Some("n\n") => "\n".to_owned(),
                Some("r") => "\r".to_owned(),
                Some("t") => "\t".to_owned(),
                Some(escape) if escape.len() == 1 => escape.to_owned(),
                Some(number) => {
                    let digits = number.trim_matches(['u', 'x', '{', '}']);
                    char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap().to_string()
                }
            })
            .collect()
    }

    proptest! {
        // PR2, PR4
        #[test]
        fn everything_shows_and_leads_back_to_its_text(
            text in prop_oneof![any::<String>(), r"[\\'nxu1b{}\n\t\x1b\u{202e}\u{ad} ]{0,12}"],
        ) {
            let quoted = quote_visible(&text);
            prop_assert!(quoted.chars().all(may_show), "{quoted:?}");
            prop_assert_eq!(unquote(&quoted), text);
        }
    }
}
