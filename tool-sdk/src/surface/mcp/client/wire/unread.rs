//! Answers that cannot be read, and what is heard in their place.
//!
//! Whoever asked would wait for such an answer until its patience ends. What is made of it
//! here is an error of the protocol with a code that no server has a reason to use, so that
//! its words are known to be ours.

use std::fmt;

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::remote::RemoteError;

/// The code of what was made here.
const OURS: ErrorCode = ErrorCode(i32::MIN);

/// The answer to a request whose own answer cannot be read, because of `why`.
pub(super) fn answer(id: RequestId, why: impl fmt::Display) -> RxJsonRpcMessage<RoleClient> {
    JsonRpcMessage::error(ErrorData::new(OURS, why.to_string(), None), Some(id))
}

/// What is heard in the place of a message that cannot be read; nothing where that is no
/// answer.
pub(super) fn instead_of(
    message: &[u8],
    why: &serde_json::Error,
) -> Option<RxJsonRpcMessage<RoleClient>> {
    /// Of everything else it does not matter what it is.
    #[derive(Deserialize)]
    struct Answer {
        id: RequestId,
        method: Option<IgnoredAny>,
    }
    let it: Answer = serde_json::from_slice(message).ok()?;
    let why = format_args!("the server's answer cannot be read: {why}");
    it.method.is_none().then(|| answer(it.id, why))
}

/// What there is to say of an answer that was made here.
pub(super) fn error(said: &ErrorData) -> Option<RemoteError> {
    (said.code == OURS).then(|| RemoteError::protocol(&said.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &[u8], is_answer: bool) {
        let error = serde_json::from_slice::<RxJsonRpcMessage<RoleClient>>(message).unwrap_err();
        let shown = String::from_utf8_lossy(message);
        assert_eq!(instead_of(message, &error).is_some(), is_answer, "{shown}");
    }

    #[test]
    fn an_answer_is_known_by_its_id() {
        for answer in [
            r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{"text":"\udcff"}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
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
            r#"{"jsonrpc":"2.0","id":1,"result":{"#,
        ] {
            check(other.as_bytes(), false);
        }
    }
}
