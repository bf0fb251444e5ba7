//! Messages that come together, as a list: batches, which 2025-03-26 knows, and no other
//! revision.
//!
//! A batch is taken apart here before anything else looks at it. Each message then goes the way
//! of one that came alone, and its answer comes back to where the batch came in, which puts the
//! answers together: `direct::together` over two streams, `http::together` over HTTP. What servers
//! of others send together is taken apart by `client::wire`.
//!
//! **Invariant:** nothing in between knows that messages came together, and how many do is
//! bounded.

use std::collections::HashSet;
use std::fmt;

use rmcp::model::ProtocolVersion;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::message::{self, MessageError};

/// How many messages may come together.
pub(super) const MAX_BATCH_MESSAGES: usize = 100;

/// How many bytes of answers may wait for the others of their batch before no more of its
/// requests are taken.
pub(super) const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Whether these are several messages, or what somebody takes for that.
pub(super) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Whether peers of this version may send batches.
pub(super) fn version_has_batches(version: &ProtocolVersion) -> bool {
    *version == ProtocolVersion::V_2025_03_26
}

/// Whether whoever says this may send batches, where it is let in.
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

/// What is said to those who may send none.
pub(super) fn unsupported_batch(text: &[u8]) -> MessageError {
    match serde_json::from_slice(text) {
        Ok(IgnoredAny) => MessageError::invalid_request(
            "several messages at once are only known to sessions of 2025-03-26",
        ),
        Err(_) => MessageError::not_json(),
    }
}

/// The messages of a batch as they are written, and what is wrong with those that cannot come
/// in one.
pub(super) fn split_batch(text: &[u8]) -> Result<Vec<Result<&str, MessageError>>, MessageError> {
    let list: BatchMessages<'_> =
        serde_json::from_slice(text).map_err(|_| MessageError::not_json())?;
    if list.is_longer {
        return Err(MessageError::invalid_request(format!(
            "at most {MAX_BATCH_MESSAGES} messages come at once"
        )));
    }
    if list.messages.is_empty() {
        return Err(MessageError::invalid_request("a list of messages has at least one"));
    }
    let mut ids = HashSet::new();
    let messages = list.messages.into_iter().map(|one| {
        let text = one.get();
        match message::request_id_and_method(text.as_bytes()) {
            Some((id, method)) if method == "initialize" => {
                Err(MessageError::invalid_request("`initialize` comes alone").with_id(Some(id)))
            }
            Some((id, _)) if !ids.insert(id.clone()) => Err(MessageError::duplicate_id(Some(id))),
            _ => Ok(text),
        }
    });
    Ok(messages.collect())
}

/// As much of a list as a batch may have.
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

    /// The codes of what is wrong, one for each message.
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
            // What is no message is for whoever reads messages.
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
