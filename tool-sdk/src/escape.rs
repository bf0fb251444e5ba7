//! Text as a JSON string, at the speed of memory.
//!
//! Large results are almost always text. serde_json looks at one byte at a time; this
//! looks at blocks, which the compiler turns into vector instructions, and copies what
//! needs no escape as a whole.

/// Writes `text` as a JSON string, quotes included.
pub(crate) fn json_string(text: &str) -> String {
    // One allocation for most texts: escapes are rare, newlines the most common.
    let mut out = String::with_capacity(text.len() + text.len() / 16 + 16);
    out.push('"');
    let mut rest = text;
    while !rest.is_empty() {
        let plain = plain_prefix(rest.as_bytes());
        out.push_str(&rest[..plain]);
        let Some(&byte) = rest.as_bytes().get(plain) else { break };
        escape(byte, &mut out);
        rest = &rest[plain + 1..];
    }
    out.push('"');
    out
}

/// How many bytes from the start need no escape.
fn plain_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let mut at = 0;
    for block in bytes.as_chunks::<BLOCK>().0 {
        if block.iter().fold(false, |special, &byte| special | needs_escape(byte)) {
            break;
        }
        at += BLOCK;
    }
    at + bytes[at..].iter().position(|&byte| needs_escape(byte)).unwrap_or(bytes.len() - at)
}

fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn escape(byte: u8, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        _ => {
            out.push_str("\\u00");
            out.push(HEX[usize::from(byte >> 4)] as char);
            out.push(HEX[usize::from(byte & 15)] as char);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_and_their_ends_are_escaped_alike() {
        for len in 0..100 {
            for special in ["\n", "\"", "\\", "\u{1}", "é", "😀"] {
                let text = format!("{}{special}{}", "x".repeat(len), "y".repeat(len));
                assert_eq!(json_string(&text), serde_json::to_string(&text).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn it_writes_what_serde_json_writes(text in any::<String>()) {
            prop_assert_eq!(json_string(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
