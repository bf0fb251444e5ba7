//! Bytes of the web as text: by a byte order mark, the header, the document, or what they look like.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a document names its encoding.
const PRESCAN_BYTES: usize = 1024;

/// Decodes a text with the given `Content-Type`. What is invalid becomes U+FFFD.
pub(super) fn decode_text(bytes: &[u8], content_type: &str) -> String {
    let encoding = label_in(content_type.as_bytes())
        .or_else(|| label_in(&bytes[..bytes.len().min(PRESCAN_BYTES)]))
        .unwrap_or_else(|| match std::str::from_utf8(bytes) {
            Ok(_) => UTF_8,
            Err(_) => WINDOWS_1252,
        });
    // A byte order mark has precedence.
    encoding.decode(bytes).0.into_owned()
}

/// Returns the encoding after `charset=`, as in a header or in `<meta charset="…">`.
fn label_in(text: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let (_, rest) = text.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| c.is_whitespace() || "\"';>/".contains(c)).unwrap_or(rest.len());
    Encoding::for_label(&rest.as_bytes()[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_named_or_guessed() {
        let html = "text/html";
        for (bytes, content_type, text) in [
            (&b"gr\xfc\xdfe"[..], "text/html; charset=ISO-8859-1", "grüße"),
            (b"gr\xc3\xbc\xc3\x9fe", html, "grüße"),
            (b"gr\xfc\xdfe", html, "grüße"),
            (b"<meta charset=\"windows-1251\">\xef\xf0", html, "<meta charset=\"windows-1251\">пр"),
            (
                b"<meta http-equiv=x content=\"text/html; charset=shift_jis\">\x83\x65",
                html,
                "<meta http-equiv=x content=\"text/html; charset=shift_jis\">テ",
            ),
            // The header has precedence over the document, and a byte order mark over both.
            (
                b"<meta charset=koi8-r>\xfc",
                "text/html; Charset=\"latin1\"",
                "<meta charset=koi8-r>ü",
            ),
            (b"\xef\xbb\xbf\xc3\xbc", "text/plain; charset=latin1", "ü"),
            (b"\xff\xfeh\x00i\x00", "text/plain", "hi"),
            // A label that does not exist, and bytes that do not fit.
            (b"\xc3\xbc", "text/plain; charset=martian", "ü"),
            (b"a\xffb", "text/plain; charset=utf-8", "a\u{fffd}b"),
        ] {
            assert_eq!(decode_text(bytes, content_type), text);
        }
    }
}
