//! JSON-RPC batches: several messages in one JSON array. Only MCP revision 2025-03-26 has them.
//!
//! A batch is split here before anything else reads it. Each message is then handled like a single
//! one, and its response returns to the place where the batch came in: `fast_path::json_rpc_batch`
//! collects the responses over two streams, `http::batch` over HTTP. Batches from other servers are
//! split by `client::wire`.
//!
//! **Invariant:** no code in between depends on the batch, and the number of messages is bounded.

use std::collections::HashSet;
use std::fmt;

use rmcp::model::ProtocolVersion;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::message::{self, MessageError};

/// The maximum number of messages in a batch.
pub(super) const MAX_BATCH_MESSAGES: usize = 100;

/// The maximum size of the collected responses of a batch. Beyond it, its remaining requests are
/// refused.
pub(super) const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Returns true if the text starts like a JSON array, so that it is meant as a batch.
pub(super) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Returns true if clients of this protocol version may send batches.
pub(super) fn version_has_batches(version: &ProtocolVersion) -> bool {
    *version == ProtocolVersion::V_2025_03_26
}

/// Returns true if a client that sends this `initialize` request may send batches once it is
/// accepted.
pub(super) fn allows_batches(hello: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Hello {
        params: Params,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        protocol_version: ProtocolVersion,
    }
    let hello = serde_json::from_slice::<Hello>(hello);
    hello.is_ok_and(|hello| version_has_batches(&hello.params.protocol_version))
}

/// Returns the error for a batch from a client that may not send any.
pub(super) fn unsupported_batch(text: &[u8]) -> MessageError {
    match serde_json::from_slice(text) {
        Ok(IgnoredAny) => MessageError::invalid_request(
            "batches are only supported in sessions of protocol version 2025-03-26",
        ),
        Err(_) => MessageError::not_json(),
    }
}

/// Splits a batch into its messages, as written. A message that is not allowed in a batch is
/// replaced by its error.
pub(super) fn split_batch(text: &[u8]) -> Result<Vec<Result<&str, MessageError>>, MessageError> {
    let list: BatchMessages<'_> =
        serde_json::from_slice(text).map_err(|_| MessageError::not_json())?;
    if list.is_longer {
        return Err(MessageError::invalid_request(format!(
            "a batch has more than {MAX_BATCH_MESSAGES} messages; send them in several batches"
        )));
    }
    if list.messages.is_empty() {
        return Err(MessageError::invalid_request("a batch must have at least one message"));
    }
    let mut ids = HashSet::new();
    let messages = list.messages.into_iter().map(|one| {
        let text = one.get();
        match message::request_id_and_method(text.as_bytes()) {
            Some((id, method)) if method == "initialize" => {
                Err(MessageError::invalid_request("`initialize` must not be part of a batch")
                    .with_id(Some(id)))
            }
            Some((id, _)) if !ids.insert(id.clone()) => Err(MessageError::duplicate_id(Some(id))),
            _ => Ok(text),
        }
    });
    Ok(messages.collect())
}

/// The messages of a batch, up to the maximum.
pub(super) struct BatchMessages<'a> {
    pub(super) messages: Vec<&'a RawValue>,
    pub(super) is_longer: bool,
}

impl<'de> Deserialize<'de> for BatchMessages<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = BatchMessages<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<BatchMessages<'de>, A::Error> {
        let mut messages = Vec::new();
        while messages.len() < MAX_BATCH_MESSAGES
            && let Some(message) = list.next_element()?
        {
            messages.push(message);
        }
        let mut is_longer = false;
        while let Some(IgnoredAny) = list.next_element()? {
            is_longer = true;
        }
        Ok(BatchMessages { messages, is_longer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error codes, one for each message.
    fn faults(text: &str) -> Result<Vec<Option<i64>>, i64> {
        let code = |fault: MessageError| fault.to_response()["error"]["code"].as_i64().unwrap();
        let all = split_batch(text.as_bytes()).map_err(code)?;
        Ok(all.into_iter().map(|one| one.err().map(code)).collect())
    }

    #[test]
    fn a_batch_is_taken_apart() {
        let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let many = |count: usize| {
            let all: Vec<_> = (0..count).map(ping).collect();
            format!("[{}]", all.join(","))
        };
        for (text, expected) in [
            ("[]", Err(-32600)),
            ("[ ]", Err(-32600)),
            ("[", Err(-32700)),
            ("[1,", Err(-32700)),
            ("[1] 2", Err(-32700)),
            // Elements that are no messages are left to the validator.
            (" [1, {}, []]", Ok(vec![None; 3])),
            (&many(MAX_BATCH_MESSAGES), Ok(vec![None; MAX_BATCH_MESSAGES])),
            (&many(MAX_BATCH_MESSAGES + 1), Err(-32600)),
            (
                &format!("[{}, {}, {}]", ping(1), ping(2), ping(1)),
                Ok(vec![None, None, Some(-32600)]),
            ),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]"#,
                Ok(vec![Some(-32600)]),
            ),
        ] {
            assert_eq!(faults(text), expected, "{}", &text[..text.len().min(80)]);
        }
        assert_eq!(split_batch(b"[\"\xff\"]").unwrap_err().to_response()["error"]["code"], -32700);
    }

    #[test]
    fn only_one_version_knows_batches() {
        let known =
            ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| version_has_batches(version));
        assert_eq!(known.map(ProtocolVersion::as_str).collect::<Vec<_>>(), ["2025-03-26"]);
        let hello = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"params":{params}}}"#);
        assert!(allows_batches(hello(r#"{"protocolVersion":"2025-03-26"}"#).as_bytes()));
        assert!(!allows_batches(hello(r#"{"protocolVersion":"2025-06-18"}"#).as_bytes()));
        assert!(!allows_batches(hello("5").as_bytes()));
    }
}
