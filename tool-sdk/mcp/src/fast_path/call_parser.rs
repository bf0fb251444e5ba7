//! A parser for the most common message: a tool call, as the libraries of most clients write it.
//!
//! It compares fixed text and allocates nothing. A general JSON parser takes half of the total time
//! of a single call.
//!
//! **Invariant:** what is accepted here means the same to the general parser in
//! [`fast_request`](super::fast_request); everything else is left to that parser.

use serde::de::IgnoredAny;

use super::fast_request::{ToolCall, is_canonical_id};

/// The call in a line, and the id of its request.
pub(super) fn parse_call(line: &str) -> Option<(&str, ToolCall<'_>)> {
    let (id, call, rest) = match line.strip_prefix(r#"{"jsonrpc":"2.0","id":"#) {
        Some(rest) => {
            let (id, rest) = parse_id(rest)?;
            let (call, rest) =
                parse_params(rest.strip_prefix(r#","method":"tools/call","params":"#)?)?;
            (id, call, rest)
        }
        // Those for TypeScript and Python begin with what is asked for.
        None => {
            let (call, rest) =
                parse_params(line.strip_prefix(r#"{"method":"tools/call","params":"#)?)?;
            let (id, rest) = parse_id(rest.strip_prefix(r#","jsonrpc":"2.0","id":"#)?)?;
            (id, call, rest)
        }
    };
    (rest == "}").then_some((id, call))
}

/// The id at the start of `text`, and what follows it.
fn parse_id(text: &str) -> Option<(&str, &str)> {
    let end = match text.as_bytes().first()? {
        b'"' => short_string_end(text.as_bytes(), 0)?,
        _ => digits_end(text.as_bytes(), 0),
    };
    let (id, rest) = text.split_at(end);
    is_canonical_id(id).then_some((id, rest))
}

/// The parameters of a call at the start of `text`, and what follows them.
fn parse_params(text: &str) -> Option<(ToolCall<'_>, &str)> {
    let text = text.strip_prefix(r#"{"name":"#)?;
    let (name, rest) = text.split_at(short_string_end(text.as_bytes(), 0)?);
    let rest = rest.strip_prefix(r#","arguments":"#)?;
    let (arguments, rest) = rest.split_at(object_end(rest)?);
    let name = name[1..name.len() - 1].into();
    Some((ToolCall { name, arguments: Some(arguments) }, rest.strip_prefix('}')?))
}

/// Where the object at the start of `text` ends.
fn object_end(text: &str) -> Option<usize> {
    if !text.starts_with('{') {
        return None;
    }
    let bytes = text.as_bytes();
    // What is open, a bit each, which is set for objects. One deeper is for the parser.
    let (mut open, mut depth) = (0_u64, 0);
    let mut at = 0;
    loop {
        at = skip_whitespace(bytes, at);
        match *bytes.get(at)? {
            begin @ (b'{' | b'[') if depth < u64::BITS => {
                let is_object = begin == b'{';
                open = (open << 1) | u64::from(is_object);
                depth += 1;
                at = skip_whitespace(bytes, at + 1);
                match (*bytes.get(at)?, is_object) {
                    (b'}', true) | (b']', false) => {}
                    (_, true) => {
                        at = key_end(text, at)?;
                        continue;
                    }
                    (_, false) => continue,
                }
            }
            b'"' => at = string_end(text, at)?,
            b'-' | b'0'..=b'9' => at = number_end(bytes, at)?,
            _ => at = literal_end(bytes, at)?,
        }
        // Behind a value: what it stands in goes on, or ends as well.
        loop {
            at = skip_whitespace(bytes, at);
            match (*bytes.get(at)?, open & 1 == 1) {
                (b',', true) => {
                    at = key_end(text, skip_whitespace(bytes, at + 1))?;
                    break;
                }
                (b',', false) => {
                    at += 1;
                    break;
                }
                (b'}', true) | (b']', false) => {
                    at += 1;
                    open >>= 1;
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => return None,
            }
        }
    }
}

/// Where the key at a place, and its colon, end.
#[inline]
fn key_end(text: &str, at: usize) -> Option<usize> {
    let colon = skip_whitespace(text.as_bytes(), string_end(text, at)?);
    (text.as_bytes().get(colon) == Some(&b':')).then_some(colon + 1)
}

/// Where the string at a place ends.
#[inline]
fn string_end(text: &str, at: usize) -> Option<usize> {
    short_string_end(text.as_bytes(), at).or_else(|| long_string(text, at))
}

/// The same for any string.
fn long_string(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..).filter(|rest| rest.starts_with('"'))?;
    let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    strings.next()?.ok()?;
    Some(at + strings.byte_offset())
}

/// The same for a short one without escapes.
#[inline]
fn short_string_end(text: &[u8], at: usize) -> Option<usize> {
    /// As many bytes as a tool's name has at most; longer texts are read faster in blocks.
    const SHORT: usize = 64;
    let inner = text.get(at..)?.strip_prefix(b"\"")?;
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    let end = inner.iter().take(SHORT + 1).position(special)?;
    (inner[end] == b'"').then_some(at + end + 2)
}

fn number_end(text: &[u8], at: usize) -> Option<usize> {
    let some_digits = |at| Some(digits_end(text, at)).filter(|end| *end > at);
    let at = skip_any(text, at, b"-");
    let mut at = match text.get(at) {
        Some(b'0') => at + 1,
        _ => some_digits(at)?,
    };
    if text.get(at) == Some(&b'.') {
        at = some_digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at = some_digits(skip_any(text, at + 1, b"+-"))?;
    }
    Some(at)
}

/// Where the digits at a place end.
#[inline]
fn digits_end(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// Behind one of these bytes, if that is there.
fn skip_any(text: &[u8], at: usize, any: &[u8]) -> usize {
    at + usize::from(text.get(at).is_some_and(|byte| any.contains(byte)))
}

fn literal_end(text: &[u8], at: usize) -> Option<usize> {
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    let word = words.into_iter().find(|word| text[at..].starts_with(word))?;
    Some(at + word.len())
}

#[inline]
fn skip_whitespace(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = text.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fast_path::fast_request::FastRequest;

    /// What the parser makes of a line.
    fn parsed(line: &str) -> Option<(String, String, Option<String>)> {
        match FastRequest::parse_general(line)? {
            FastRequest::Call { id, call } => Some(told(id, &call)),
            _ => None,
        }
    }

    fn told(id: &str, call: &ToolCall<'_>) -> (String, String, Option<String>) {
        (id.to_owned(), call.name.clone().into_owned(), call.arguments.map(str::to_owned))
    }

    fn written(arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        )
    }

    #[test]
    fn calls_are_read_as_the_libraries_write_them() {
        for line in [
            written(r#"{"a":[1,{"b":"\n"},[],{}],"c":-1.5e3, "d" : null }"#),
            written("{ }"),
            written(&format!(r#"{{"text":"{}"}}"#, "a long text, é \\\" ".repeat(20))),
            r#"{"jsonrpc":"2.0","id":"a b","method":"tools/call","params":{"name":"t","arguments":{}}}"#.to_owned(),
            r#"{"method":"tools/call","params":{"name":"t","arguments":{"a":true}},"jsonrpc":"2.0","id":0}"#.to_owned(),
        ] {
            let read = parse_call(&line).map(|(id, call)| told(id, &call));
            assert!(read.is_some(), "{line}");
            assert_eq!(read, parsed(&line), "{line}");
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_the_parser() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64));
        let wrong = [
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1}}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":-}"#,
            r#"{"a":1e}"#,
            r#"{"a":tru}"#,
            r#"{"a" 1}"#,
            r#"{a:1}"#,
            "{\"a\":\"\n\"}",
            "[]",
            "null",
            "1",
            "{",
            "",
            &deep,
        ];
        for line in wrong.map(written) {
            assert!(parse_call(&line).is_none(), "{line}");
        }
        for line in [
            "",
            "{}",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}{"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}},"id":2}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"t","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":01,"method":"tools/call","params":{"name":"t","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":,"method":"tools/call","params":{"name":"t","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"t","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0074","arguments":{}}}"#,
        ] {
            assert!(parse_call(line).is_none(), "{line}");
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            r#""([a-z\\"/nu{}\[\]:,é ]|\\.){0,4}""#,
            "-?[0-9]{1,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?",
            Just("true".to_owned()),
            Just("null".to_owned()),
            Just("nul".to_owned()),
        ];
        leaf.prop_recursive(4, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3)
                    .prop_map(|all| format!("[{}]", all.join(", "))),
                prop::collection::vec((r#""[a-c\\]{0,2}""#, inner), 0..3).prop_map(|all| {
                    let all: Vec<_> =
                        all.iter().map(|(key, value)| format!("{key} :{value}")).collect();
                    format!("{{{}}}", all.join(" ,"))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_call_is_what_the_parser_reads(
            arguments in json(),
            id in prop_oneof![json(), Just("7".to_owned())],
            cut in any::<prop::sample::Index>(),
            with in prop_oneof![Just(String::new()), ".", "[\"{}\\[\\]:, \\\\]"],
        ) {
            let line = format!(
                r#"{{"method":"tools/call","params":{{"name":"t","arguments":{arguments}}},"jsonrpc":"2.0","id":{id}}}"#
            );
            let at = line.floor_char_boundary(cut.index(line.len()));
            let broken = format!("{}{with}{}", &line[..at], &line[line.ceil_char_boundary(at + 1)..]);
            for line in [line, broken] {
                if let Some((id, call)) = parse_call(&line) {
                    prop_assert_eq!(Some(told(id, &call)), parsed(&line), "{}", line);
                }
            }
        }
    }
}
