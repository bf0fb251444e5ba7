//! Decode fallback: repairs messages that cannot be parsed, or answers the request with an error.
//!
//! Without it the caller would wait for such a response until the timeout. The error has a code that
//! no server uses, which marks it as created here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::depth_limit;
use super::task_support::keep_task_support;
use crate::client::remote::RemoteError;

/// The code of errors that are created here.
const LOCAL_ERROR: ErrorCode = ErrorCode(i32::MIN);

/// Returns an error response to a request whose own response cannot be parsed, because of `why`.
pub(super) fn error_response(
    id: RequestId,
    why: impl fmt::Display,
) -> RxJsonRpcMessage<RoleClient> {
    JsonRpcMessage::error(ErrorData::new(LOCAL_ERROR, why.to_string(), None), Some(id))
}

/// The byte order mark.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Strips a byte order mark.
pub(super) fn strip_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Parses a message, with the fallback.
pub(super) fn decode_message(message: &[u8]) -> serde_json::Result<RxJsonRpcMessage<RoleClient>> {
    let message = &*keep_task_support(message);
    serde_json::from_slice(message).or_else(|error| decode_fallback(message, &error).ok_or(error))
}

/// Returns a replacement for a message that cannot be parsed; `None` where it is not a response.
/// Replaces lone surrogates by U+FFFD and drops members that are `null` (JSON-RPC 1.0 style), then
/// parses again.
pub(super) fn decode_fallback(
    message: &[u8],
    why: &serde_json::Error,
) -> Option<RxJsonRpcMessage<RoleClient>> {
    let whole = replace_lone_surrogates(message);
    let mended = drop_null_members(whole.as_deref().unwrap_or(message)).or(whole);
    if let Some(message) = mended.and_then(|it| serde_json::from_slice(&it).ok()) {
        return Some(message);
    }
    if let Some(message) =
        depth_limit::replace_deep_tools(message).and_then(|it| serde_json::from_slice(&it).ok())
    {
        return Some(message);
    }
    let mut known = PartialMessage::default();
    // Members before the syntax error count.
    let _ = serde_json::Deserializer::from_slice(message).deserialize_map(&mut known);
    let why = format_args!("the server's response cannot be parsed: {why}");
    known.id.filter(|_| !known.has_method).map(|id| error_response(id, why))
}

/// The id of a message that cannot be parsed as a whole, and whether it has a method.
#[derive(Default)]
struct PartialMessage {
    id: Option<RequestId>,
    has_method: bool,
}

impl<'de> Visitor<'de> for &mut PartialMessage {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            match &*key {
                "id" => self.id = members.next_value()?,
                key => {
                    self.has_method |= key == "method";
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Replaces escapes of lone surrogates by `\ufffd`; `None` where there are none.
fn replace_lone_surrogates(message: &[u8]) -> Option<Vec<u8>> {
    const ESCAPE: usize = r"\u0000".len();
    const LOST: &[u8] = br"\ufffd";
    let unit = |at: usize| {
        let digits = message.get(at..at + ESCAPE)?.strip_prefix(br"\u")?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut whole = Vec::with_capacity(message.len());
    let (mut at, mut is_changed) = (0, false);
    while let Some(&byte) = message.get(at) {
        let (kept, length) = match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + ESCAPE), Some(0xdc00..=0xdfff)) => {
                (&message[at..at + 2 * ESCAPE], 2 * ESCAPE)
            }
            Some(0xd800..=0xdfff) => (LOST, ESCAPE),
            // An escaped backslash does not start another escape.
            _ if byte == b'\\' => (&message[at..message.len().min(at + 2)], 2),
            _ => (&message[at..=at], 1),
        };
        is_changed |= kept == LOST && length == ESCAPE && message[at..at + ESCAPE] != *LOST;
        whole.extend_from_slice(kept);
        at += length;
    }
    is_changed.then_some(whole)
}

/// Removes members that are `null`, such as `"local_error": null` beside a result, as JSON-RPC 1.0 has
/// them; `None` where there are none.
fn drop_null_members(message: &[u8]) -> Option<Vec<u8>> {
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_slice(message).ok()?;
    let before = members.len();
    members.retain(|key, value| *key == "id" || value.get() != "null");
    (members.len() < before).then(|| serde_json::to_vec(&members).ok()).flatten()
}

/// Returns the error for the caller, if the response was created here.
pub(super) fn local_error(said: &ErrorData) -> Option<RemoteError> {
    (said.code == LOCAL_ERROR).then(|| RemoteError::protocol(&said.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &[u8], is_answer: bool) {
        let error = serde_json::from_slice::<RxJsonRpcMessage<RoleClient>>(message).unwrap_err();
        let shown = String::from_utf8_lossy(message);
        assert_eq!(decode_fallback(message, &error).is_some(), is_answer, "{shown}");
    }

    #[test]
    fn replaces_lone_surrogates() {
        for (text, expected) in [
            (r"a\ud83d", "a\u{fffd}"),
            (r"\ud83d\ud83d\ude00\ude00", "\u{fffd}\u{1f600}\u{fffd}"),
            (r"\\ud83d \udcff", "\\ud83d \u{fffd}"),
            (r"\ud83dx\n", "\u{fffd}x\n"),
        ] {
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{text}"}}}}"#);
            let error = serde_json::from_str::<RxJsonRpcMessage<RoleClient>>(&message).unwrap_err();
            let heard = serde_json::to_value(decode_fallback(message.as_bytes(), &error)).unwrap();
            assert_eq!(heard["result"]["text"], expected, "{text}");
        }
    }

    // F117: as JSON-RPC 1.0 writes responses.
    #[test]
    fn drops_null_members() {
        for (message, key) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}"#, "result"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d"},"error": null}"#, "result"),
            (r#"{"jsonrpc":"2.0","id":"1","method":null,"params":null,"result":{}}"#, "result"),
            (r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}"#, "error"),
        ] {
            let error = serde_json::from_str::<RxJsonRpcMessage<RoleClient>>(message).unwrap_err();
            let heard = serde_json::to_value(decode_fallback(message.as_bytes(), &error)).unwrap();
            assert_ne!(heard["error"]["code"], LOCAL_ERROR.0, "{heard}");
            assert!(heard.get(key).is_some(), "{heard}");
        }
    }

    #[test]
    fn only_responses_get_a_replacement() {
        for answer in [
            r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{"text":"\udcff"}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"minimum":Infinity}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"#,
        ] {
            check(answer.as_bytes(), true);
        }
        check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"\xff\"}}", true);
        for other in [
            "nonsense",
            "[]",
            "{}",
            r#"{"jsonrpc":"2.0","id":null,"error":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","method":"x","id":1,"params":{"x":NaN}}"#,
            r#"{"jsonrpc":"2.0","result":{"id":1,"x":NaN}}"#,
        ] {
            check(other.as_bytes(), false);
        }
    }
}
