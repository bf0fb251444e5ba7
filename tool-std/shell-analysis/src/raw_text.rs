//! Rejects scripts with invisible or misleading characters, before any parsing.
//!
//! Users approve what they see, so text that may be displayed differently is opaque. The lexer
//! and the parser rely on this check and do not repeat it.

use super::OpaqueReason;

/// The maximum length of an analysed script, in bytes.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// The maximum number of consecutive whitespace characters.
const MAX_BLANKS: usize = 200;

/// Fails with the reason why a part of `text` may be hidden.
pub(super) fn check_raw_text(text: &str) -> Result<(), OpaqueReason> {
    if text.len() > MAX_BYTES {
        return Err(OpaqueReason::TooLong);
    }
    let mut blanks = 0;
    for c in text.chars() {
        blanks = if matches!(c, ' ' | '\t' | '\n') { blanks + 1 } else { 0 };
        if blanks > MAX_BLANKS {
            return Err(OpaqueReason::Padding);
        }
        if c.is_control() && !matches!(c, '\t' | '\n') {
            return Err(OpaqueReason::ControlCharacters);
        }
        if is_invisible(c) {
            return Err(OpaqueReason::InvisibleCharacters);
        }
    }
    Ok(())
}

/// Non-ASCII whitespace, default-ignorable characters, and characters that reorder text.
fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    c.is_whitespace()
        || matches!(
            u32::from(c),
            0x00AD
                | 0x034F
                | 0x061C
                | 0x115F..=0x1160
                | 0x17B4..=0x17B5
                | 0x180B..=0x180F
                | 0x200B..=0x200F
                | 0x202A..=0x202E
                | 0x2060..=0x206F
                | 0x2800
                | 0x3164
                | 0xFE00..=0xFE0F
                | 0xFEFF
                | 0xFFA0
                | 0xFFF0..=0xFFFD
                | 0x1BCA0..=0x1BCA3
                | 0x1D173..=0x1D17A
                | 0xE0000..=0xE0FFF
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_invisible_text() {
        for (text, why) in [
            ("ls\r\n", OpaqueReason::ControlCharacters),
            ("ls\0", OpaqueReason::ControlCharacters),
            ("ls \x1b[8m", OpaqueReason::ControlCharacters),
            ("ls \u{85}", OpaqueReason::ControlCharacters),
            ("ls\u{a0}-l", OpaqueReason::InvisibleCharacters),
            ("ls \u{202e}fdp.sh", OpaqueReason::InvisibleCharacters),
            ("git\u{200b} push", OpaqueReason::InvisibleCharacters),
            ("ls \u{e0041}", OpaqueReason::InvisibleCharacters),
            ("ls \u{3000}x", OpaqueReason::InvisibleCharacters),
            ("ls \u{2028}rm", OpaqueReason::InvisibleCharacters),
            ("echo \u{fe0f}", OpaqueReason::InvisibleCharacters),
        ] {
            assert_eq!(check_raw_text(text), Err(why), "{text:?}");
        }
        assert_eq!(
            check_raw_text(&format!("ls{}; rm x", " ".repeat(300))),
            Err(OpaqueReason::Padding)
        );
        assert_eq!(check_raw_text(&"x".repeat(MAX_BYTES + 1)), Err(OpaqueReason::TooLong));
    }

    #[test]
    fn accepts_visible_text() {
        for text in ["ls\t-l\npwd", "echo grün 日本語 😀", "", "\t\tx"] {
            assert_eq!(check_raw_text(text), Ok(()), "{text:?}");
        }
    }
}
