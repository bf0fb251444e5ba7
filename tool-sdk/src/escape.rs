//! Escapes text as a JSON string, faster than serde_json for long texts.
//!
//! serde_json checks one byte at a time. This module checks blocks of 32 bytes, which the compiler
//! vectorizes, and copies text that needs no escape in one piece.
//!
//! **Invariant:** the result is byte for byte what serde_json writes.

/// A buffer to which JSON is written.
pub(crate) trait Sink {
    /// Reserves capacity for `bytes` more bytes.
    fn room(&mut self, bytes: usize);
    fn put(&mut self, text: &str);
}

impl Sink for String {
    #[inline]
    fn room(&mut self, bytes: usize) {
        self.reserve(bytes);
    }

    #[inline]
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn room(&mut self, bytes: usize) {
        self.reserve(bytes);
    }

    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

/// Returns `text` as a JSON string with quotes.
pub(crate) fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(room(text));
    put_json_string(&mut out, text);
    out
}

/// Estimates the length of the JSON string; escapes are rare, newlines the most common.
fn room(text: &str) -> usize {
    text.len() + text.len() / 16 + 16
}

/// Writes `text` as a JSON string with quotes.
pub(crate) fn put_json_string(out: &mut impl Sink, text: &str) {
    out.room(room(text));
    out.put("\"");
    let mut rest = text;
    while !rest.is_empty() {
        let plain = plain_prefix(rest.as_bytes());
        out.put(&rest[..plain]);
        let Some(&byte) = rest.as_bytes().get(plain) else { break };
        escape(byte, out);
        rest = &rest[plain + 1..];
    }
    out.put("\"");
}

/// Parses the JSON string at the start of `json`, and returns it with its length in `json`. Returns
/// `None` when it is malformed or has a `\u` escape; the caller then uses serde_json.
pub(crate) fn plain_json_string(json: &str) -> Option<(String, usize)> {
    /// The maximum capacity that is reserved before the length is known.
    const MOST_AHEAD: usize = 64 << 10;
    let inner = json.strip_prefix('"')?;
    let mut plain = plain_prefix(inner.as_bytes());
    if inner.as_bytes().get(plain)? == &b'"' {
        return Some((inner[..plain].to_owned(), plain + 2));
    }
    let mut out = String::with_capacity(inner.len().min(MOST_AHEAD));
    let mut rest = inner;
    loop {
        if plain > out.capacity() - out.len() {
            // Reserve for the whole rest once, so that a long text is not reallocated repeatedly.
            out.reserve(rest.len());
        }
        out.push_str(&rest[..plain]);
        match rest.as_bytes()[plain..] {
            [b'\\', escape, ..] => out.push(unescape(escape)?),
            [b'"', ..] => break,
            _ => return None,
        }
        rest = &rest[plain + 2..];
        plain = plain_prefix(rest.as_bytes());
    }
    if out.len() < out.capacity() / 2 {
        out.shrink_to_fit();
    }
    Some((out, inner.len() - rest.len() + plain + 2))
}

/// Returns the length of the JSON string at the start of `json`, or `None` where
/// [`parse_simple_json_string`] returns `None`.
pub(crate) fn plain_json_string_len(json: &str) -> Option<usize> {
    let inner = json.strip_prefix('"')?.as_bytes();
    let mut at = 0;
    loop {
        at += plain_prefix(&inner[at..]);
        match inner[at..] {
            [b'\\', escape, ..] => drop(unescape(escape)?),
            [b'"', ..] => return Some(at + 2),
            _ => return None,
        }
        at += 2;
    }
}

/// Returns whether `json` is a JSON string exactly as [`write_json_string`] writes it.
pub(crate) fn is_json_string_as_written(json: &str) -> bool {
    let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return false;
    };
    let mut rest = inner.as_bytes();
    loop {
        rest = match rest {
            [] => return true,
            [b'\\', b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f', after @ ..] => after,
            // Characters with a short escape are not written as `\u`.
            [b'\\', b'u', b'0', b'0', b'0', b'8' | b'9' | b'a' | b'c' | b'd', ..] => return false,
            [b'\\', b'u', b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f', after @ ..] => after,
            [byte, ..] if needs_escape(*byte) => return false,
            plain => &plain[plain_prefix(plain)..],
        };
    }
}

fn unescape(escape: u8) -> Option<char> {
    Some(match escape {
        b'"' | b'\\' | b'/' => char::from(escape),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\x08',
        b'f' => '\x0c',
        _ => return None,
    })
}

/// Returns the length of the prefix that needs no escape.
fn plain_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let mut at = 0;
    for block in bytes.as_chunks::<BLOCK>().0 {
        // In this form the compiler vectorizes it; as a single fold it does not.
        let mut special = [0; BLOCK];
        for (special, byte) in special.iter_mut().zip(block) {
            *special = u8::from(needs_escape(*byte));
        }
        if special.iter().fold(0, |any, special| any | special) != 0 {
            return at + first_set(&special);
        }
        at += BLOCK;
    }
    at + bytes[at..].iter().position(|&byte| needs_escape(byte)).unwrap_or(bytes.len() - at)
}

/// Returns the index of the first byte that is not zero.
fn first_set(bytes: &[u8]) -> usize {
    const WORD: usize = size_of::<u64>();
    let mut at = 0;
    for word in bytes.as_chunks::<WORD>().0 {
        let word = u64::from_le_bytes(*word);
        if word != 0 {
            return at + word.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    at
}

fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

#[inline]
fn escape(byte: u8, out: &mut impl Sink) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.put("\\\""),
        b'\\' => out.put("\\\\"),
        b'\n' => out.put("\\n"),
        b'\r' => out.put("\\r"),
        b'\t' => out.put("\\t"),
        0x08 => out.put("\\b"),
        0x0c => out.put("\\f"),
        _ => {
            let number = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.put("\\u00");
            out.put(str::from_utf8(&number).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_like_serde_json_at_every_offset() {
        for len in 0..100 {
            for special in ["\n", "\"", "\\", "\u{1}", "é", "😀"] {
                let text = format!("{}{special}{}", "x".repeat(len), "y".repeat(len));
                assert_eq!(json_string(&text), serde_json::to_string(&text).unwrap());
            }
        }
    }

    /// Compares value and length with serde_json.
    #[track_caller]
    fn check_read(json: &str) {
        let found = plain_json_string(json);
        assert_eq!(plain_json_string_len(json), found.as_ref().map(|(_, length)| *length));
        let Some((text, length)) = found else { return };
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<String>();
        assert_eq!(text, values.next().unwrap().unwrap());
        assert_eq!(length, values.byte_offset());
    }

    #[test]
    fn rejects_malformed_strings() {
        for json in ["", "a", "\"", "\"a", "\"\\", "\"\\\"", "\"\\u0041\"", "\"\u{1}\"", "\"\\x\""]
        {
            assert_eq!(plain_json_string(json), None, "{json}");
        }
        for len in 0..100 {
            let json = format!("\"{}\\n{}\\\"é\", 1", "x".repeat(len), "y".repeat(len));
            assert!(plain_json_string(&json).is_some());
            check_read(&json);
        }
    }

    #[test]
    fn detects_non_canonical_escapes() {
        for json in
            ["\"\"", "\"é 😀\"", r#""a\n\"\\\b\f\r\t""#, r#""\u0001\u001f""#, "\"\u{7f}\u{2028}\""]
        {
            assert!(is_json_string_as_written(json), "{json}");
        }
        for json in [
            "",
            "\"",
            "a",
            "1",
            r#""\""#,
            r#""a"b""#,
            r#""\/""#,
            r#""\u0041""#,
            r#""\u000a""#,
            r#""\u001F""#,
            r#""\u00e9""#,
            r#""\u0000"#,
            r#""\u00""#,
            r#""\ud800""#,
            "\"\n\"",
            r#""\x""#,
        ] {
            assert!(!is_json_string_as_written(json), "{json}");
        }
    }

    proptest! {
        #[test]
        fn canonical_means_equal_to_serde_json(
            raw in r#"([a-z"é]|\\["\\/bfnrtx]|\\u00[01][0-9a-fF]|\\u[0-9a-f]{0,4}){0,12}"#, text in any::<String>(),
        ) {
            prop_assert!(is_json_string_as_written(&json_string(&text)));
            let json = format!("\"{raw}\"");
            let again = serde_json::from_str::<String>(&json).ok().map(|text| json_string(&text));
            prop_assert_eq!(is_json_string_as_written(&json), again.as_deref() == Some(&json));
        }

        #[test]
        fn parses_like_serde_json(text in any::<String>(), raw in "[a-z\"\\\\\n\té😀]{0,80}") {
            check_read(&format!("{}, \"next\": 1", serde_json::to_string(&text).unwrap()));
            check_read(&format!("\"{raw}\", 1"));
        }

        #[test]
        fn writes_like_serde_json(text in any::<String>()) {
            prop_assert_eq!(json_string(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
