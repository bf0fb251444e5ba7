//! The messages that are answered without rmcp: what they look like to the last key.
//!
//! **Invariant:** a message with anything unknown in it is not one of them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::super::message::object;
use crate::call::Call;

/// A message of the protocol, borrowed from its line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// What is called, with what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    /// As the peer wrote them, down to keys that stand there twice.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl ToolCall<'_> {
    /// The call; `cancel` ends it.
    pub(super) fn call(&self, cancel: &CancellationToken) -> Call<'static> {
        let arguments = self.arguments.map_or("{}", RawValue::get).to_owned();
        Call::new(self.name.clone().into_owned(), arguments).cancelled_by(cancel.clone())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

/// A message that can be answered here.
#[derive(Debug)]
pub(super) enum Simple<'a> {
    Ping {
        id: &'a str,
    },
    List {
        id: &'a str,
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

impl<'a> Simple<'a> {
    /// Nothing where rmcp has to look at the message.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let line = str::from_utf8(line).ok()?;
        let Envelope { jsonrpc, id, method, params } = object(line).ok()?;
        if jsonrpc != "2.0" {
            return None;
        }
        let id = id.map(RawValue::get);
        match (&*method, id) {
            ("tools/call", Some(id)) if is_id(id) => {
                Some(Self::Call { id, call: object(params?.get()).ok()? })
            }
            ("tools/list", Some(id)) if is_id(id) && is_empty(params) => Some(Self::List { id }),
            ("ping", Some(id)) if is_id(id) && is_empty(params) => Some(Self::Ping { id }),
            ("notifications/cancelled", None) => {
                let Cancelled { request_id } = object(params?.get()).ok()?;
                Some(Self::Cancelled { id: request_id.get() })
            }
            _ => None,
        }
    }
}

impl Simple<'_> {
    /// The id of a request.
    pub(super) fn request(&self) -> Option<&str> {
        match self {
            Self::Ping { id } | Self::List { id } | Self::Call { id, .. } => Some(id),
            Self::Cancelled { .. } => None,
        }
    }
}

/// A whole number or a text without anything to resolve, so that equal ids are equal texts.
fn is_id(id: &str) -> bool {
    match id.as_bytes() {
        [b'"', .., b'"'] => !id.contains('\\'),
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 18 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn is_empty(params: Option<&RawValue>) -> bool {
    params.is_none_or(|params| params.get() == "{}")
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
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"a"}}"#, false),
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
            assert_eq!(Simple::read(line.as_bytes()).is_some(), simple, "{line}");
        }
    }
}
