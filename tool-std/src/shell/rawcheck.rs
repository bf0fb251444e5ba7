//! What no command line may contain, whatever its structure: looked for in the raw text.
//!
//! People approve what they see, so text that is not seen as it is, is not understood. The
//! scanners rely on this check and look at none of these characters again.

use super::Why;

/// The longest script that is understood, in bytes.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// More blanks in a row than this are not for layout.
const MAX_BLANKS: usize = 200;

/// Fails with what hides a part of `text`.
pub(super) fn check(text: &str) -> Result<(), Why> {
    if text.len() > MAX_BYTES {
        return Err(Why::TooLong);
    }
    let mut blanks = 0;
    for c in text.chars() {
        blanks = if matches!(c, ' ' | '\t' | '\n') { blanks + 1 } else { 0 };
        if blanks > MAX_BLANKS {
            return Err(Why::Padding);
        }
        if c.is_control() && !matches!(c, '\t' | '\n') {
            return Err(Why::Control);
        }
        if is_invisible(c) {
            return Err(Why::Invisible);
        }
    }
    Ok(())
}

/// Blanks that are not ASCII, and what Unicode calls default-ignorable or reorders text.
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
    fn what_is_not_seen_is_refused() {
        for (text, why) in [
            ("ls\r\n", Why::Control),
            ("ls\0", Why::Control),
            ("ls \x1b[8m", Why::Control),
            ("ls \u{85}", Why::Control),
            ("ls\u{a0}-l", Why::Invisible),
            ("ls \u{202e}fdp.sh", Why::Invisible),
            ("git\u{200b} push", Why::Invisible),
            ("ls \u{e0041}", Why::Invisible),
            ("ls \u{3000}x", Why::Invisible),
            ("ls \u{2028}rm", Why::Invisible),
            ("echo \u{fe0f}", Why::Invisible),
        ] {
            assert_eq!(check(text), Err(why), "{text:?}");
        }
        assert_eq!(check(&format!("ls{}; rm x", " ".repeat(300))), Err(Why::Padding));
        assert_eq!(check(&"x".repeat(MAX_BYTES + 1)), Err(Why::TooLong));
    }

    #[test]
    fn what_is_seen_is_not() {
        for text in ["ls\t-l\npwd", "echo grün 日本語 😀", "", "\t\tx"] {
            assert_eq!(check(text), Ok(()), "{text:?}");
        }
    }
}
