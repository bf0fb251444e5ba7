//! The requests that the fast path can answer.
//!
//! **Invariant:** a message with an unknown key is not accepted here.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::call_parser;
use crate::message::parse_object;

/// A request, borrowed from its line and read in one go.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestEnvelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<ObjectOf<RequestParams<'a>>>,
}

/// The parameters of all requests that are answered here.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RequestParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    cursor: Option<String>,
}

/// The members of an object. Other than a plain structure it is never a list of its values.
#[derive(Default)]
struct ObjectOf<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = ObjectOf<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ObjectOf<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(ObjectOf)
    }
}

/// What is called, with what.
#[derive(Debug)]
pub(super) struct ToolCall<'a> {
    pub(super) name: Cow<'a, str>,
    /// As the peer wrote them, down to keys that stand there twice.
    pub(super) arguments: Option<&'a str>,
}

/// A notification, of which only what matters is looked at.
#[derive(Deserialize)]
struct NotificationEnvelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: Option<IgnoredAny>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: ObjectOf<CancelledParams<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledParams<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

/// A message that can be answered here.
#[derive(Debug)]
pub(super) enum FastRequest<'a> {
    Ping {
        id: &'a str,
    },
    List {
        id: &'a str,
        /// Where the page begins, when it is not the first.
        cursor: Option<String>,
    },
    Call {
        id: &'a str,
        call: ToolCall<'a>,
    },
    /// No answer is wanted any more to the request with this id.
    Cancelled {
        id: &'a str,
    },
}

impl<'a> FastRequest<'a> {
    /// Nothing where rmcp has to look at the message.
    pub(super) fn parse_line(line: &'a [u8]) -> Option<Self> {
        let line = str::from_utf8(line).ok()?;
        match call_parser::parse_call(line) {
            Some((id, call)) => Some(Self::Call { id, call }),
            None => Self::parse_general(line),
        }
    }

    /// Parses a line with the general JSON parser.
    pub(super) fn parse_general(line: &'a str) -> Option<Self> {
        match parse_object(line) {
            Ok(request) => Self::from_envelope(request),
            Err(_) => Self::parse_cancelled(line),
        }
    }

    fn from_envelope(request: RequestEnvelope<'a>) -> Option<Self> {
        let RequestEnvelope { jsonrpc, id, method, params } = request;
        let id = id.get();
        if jsonrpc != "2.0" || !is_canonical_id(id) {
            return None;
        }
        let ObjectOf(RequestParams { name, arguments, cursor }) = params.unwrap_or_default();
        let is_bare = name.is_empty() && arguments.is_none();
        match &*method {
            "tools/call" if cursor.is_none() => {
                let arguments = arguments.map(RawValue::get);
                Some(Self::Call { id, call: ToolCall { name, arguments } })
            }
            "tools/list" if is_bare => Some(Self::List { id, cursor }),
            "ping" if is_bare && cursor.is_none() => Some(Self::Ping { id }),
            _ => None,
        }
    }

    fn parse_cancelled(line: &'a str) -> Option<Self> {
        let NotificationEnvelope { jsonrpc, id, method, params } = parse_object(line).ok()?;
        let is_one = jsonrpc == "2.0" && id.is_none() && method == "notifications/cancelled";
        is_one.then_some(Self::Cancelled { id: params.0.request_id.get() })
    }
}

impl FastRequest<'_> {
    /// The id of a request.
    pub(super) fn request_id(&self) -> Option<&str> {
        match self {
            Self::Ping { id } | Self::List { id, .. } | Self::Call { id, .. } => Some(id),
            Self::Cancelled { .. } => None,
        }
    }
}

/// A whole number or a text without anything to resolve, so that equal ids are equal texts.
pub(super) fn is_canonical_id(id: &str) -> bool {
    match id.as_bytes() {
        [b'"', .., b'"'] => !id.contains('\\'),
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 18 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_the_last_key_is_answered_here() {
        for (line, simple) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true),
            (r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#, true),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"x":{}}}"#,
                true,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"a"}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"a"}}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"cursor":"a"}}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#, false),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"requestId":1}}"#,
                false,
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#, false),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{}}}"#,
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","name":"u"}}"#,
                false,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","id":-1,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","id":"\u0061","method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, false),
            (r#"["2.0",1,"ping",null]"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["t",{}]}"#, false),
            ("nonsense", false),
            ("", false),
        ] {
            assert_eq!(FastRequest::parse_line(line.as_bytes()).is_some(), simple, "{line}");
        }
    }
}
