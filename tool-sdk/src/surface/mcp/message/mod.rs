//! What a peer sends, judged before the protocol's library reads it.
//!
//! That library takes the last of two equal keys. Here a message is read once more as it was
//! written: what is no message is refused with the reason, and the arguments of a call go on
//! as text, so that the tool's own reader judges them.
//!
//! **Invariant:** of two equal keys none is chosen.

mod decode;

use std::borrow::Cow;

use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData,
    InitializeRequestParams, JsonRpcMessage, RequestId,
};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(super) use self::decode::decode_message;
use crate::tool::is_clear;

/// The longest message that a peer may send.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// How many objects and lists a message may have in each other: more than any that is meant.
const MAX_DEPTH: usize = 100;

/// The arguments of a call, as the peer wrote them.
#[derive(Clone, Debug)]
pub(super) struct RawArguments(pub(super) Box<str>);

/// A message with everything that tells what it is.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// What is there, also when it is null.
fn deserialize_present<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// What is called, with what.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct CallToolParams<'a> {
    #[serde(borrow, rename = "name")]
    _name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputResponses")]
    answers: Option<&'a RawValue>,
}

/// Which part of a list is wanted.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct PageParams<'a> {
    #[serde(borrow, rename = "cursor")]
    _cursor: Option<Cow<'a, str>>,
}

/// Why a message is none.
#[derive(Debug)]
pub(super) struct MessageError {
    /// The request that it was, where that can be told.
    id: Option<RequestId>,
    code: ErrorCode,
    message: Cow<'static, str>,
}

impl MessageError {
    fn new(code: ErrorCode, words: impl Into<Cow<'static, str>>) -> Self {
        Self { id: None, code, message: words.into() }
    }

    pub(super) fn invalid_request(words: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, words)
    }

    pub(super) fn too_long() -> Self {
        Self::invalid_request(format!("a message has at most {MAX_MESSAGE_BYTES} bytes"))
    }

    /// The request that has this id came before the answer to another one that has it.
    pub(super) fn duplicate_id(id: Option<RequestId>) -> Self {
        Self::invalid_request("a request with this `id` is still open").with_id(id)
    }

    /// This request came while as many as are kept did wait already.
    pub(super) fn too_many_requests(id: Option<RequestId>) -> Self {
        let words = "too many requests wait; send this again when some of them are answered";
        Self::invalid_request(words).with_id(id)
    }

    /// What is no JSON at all.
    pub(super) fn not_json() -> Self {
        Self::new(ErrorCode::PARSE_ERROR, "the message is not JSON")
    }

    /// What is wrong with the request that has this id.
    pub(super) fn with_id(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }

    /// Whether it was a request of which this can be told.
    pub(super) fn has_request_id(&self) -> bool {
        self.id.is_some()
    }

    /// Whether the peer asked for something that there is not.
    pub(super) fn is_method_not_found(&self) -> bool {
        self.code == ErrorCode::METHOD_NOT_FOUND
    }

    /// What is answered: a message of the protocol.
    pub(super) fn to_response(&self) -> Value {
        let error = json!({ "code": self.code, "message": self.message });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }
}

/// What a message is, as far as that matters before it is read.
#[derive(Debug)]
pub(super) enum MessageKind {
    /// The first of a session.
    Initialize,
    ToolCall(RawArguments),
    /// An answer to a question of ours, and not in the form of one.
    InvalidResponse(RequestId),
    Other,
}

/// Judges a message. Nothing is answered to what is no request, so a broken notification is
/// none of the faults.
pub(super) fn validate_message(text: &[u8]) -> Result<MessageKind, MessageError> {
    let text = str::from_utf8(text)
        .map_err(|_| MessageError::new(ErrorCode::PARSE_ERROR, "the message is not UTF-8"))?;
    if is_too_deep(text) {
        return Err(MessageError::invalid_request(format!(
            "a message is at most {MAX_DEPTH} levels deep"
        )));
    }
    let envelope: Envelope<'_> =
        parse_object(text).map_err(|error| envelope_error(text, &error))?;
    let id = envelope.id.map(|id| serde_json::from_str::<RequestId>(id.get()));
    let Ok(id) = id.transpose() else {
        return Err(MessageError::invalid_request(
            "the `id` of a message is a text or a whole number",
        ));
    };
    if envelope.jsonrpc != "2.0" {
        return Err(MessageError::invalid_request("`jsonrpc` must be \"2.0\"").with_id(id));
    }
    match (envelope.method.as_deref(), &id) {
        (Some(_), Some(_)) if envelope.params.is_some_and(|it| !it.get().starts_with('{')) => {
            Err(MessageError::new(ErrorCode::INVALID_PARAMS, "`params` must be an object")
                .with_id(id))
        }
        (Some(method), Some(_))
            if REMOVED_METHODS.contains(&method) && says_version(envelope.params) =>
        {
            let words = format!("requests of 2026-07-28 do not know `{method}`");
            Err(MessageError::new(ErrorCode::METHOD_NOT_FOUND, words).with_id(id))
        }
        (Some("tools/call"), Some(_)) => match parse_call_arguments(envelope.params) {
            Ok(written) => Ok(MessageKind::ToolCall(written)),
            Err(why) => Err(MessageError::new(ErrorCode::INVALID_PARAMS, why).with_id(id)),
        },
        (Some("initialize"), Some(_)) => match check_params("initialize", envelope.params) {
            Ok(()) => Ok(MessageKind::Initialize),
            Err(why) => Err(MessageError::new(ErrorCode::INVALID_PARAMS, why).with_id(id)),
        },
        (Some(method), Some(_)) => match check_params(method, envelope.params) {
            Ok(()) => Ok(MessageKind::Other),
            Err(why) => Err(MessageError::new(ErrorCode::INVALID_PARAMS, why).with_id(id)),
        },
        (Some(_), None) => Ok(MessageKind::Other),
        (None, Some(answered)) => match (envelope.result, envelope.error) {
            (Some(result), None) if is_clear(result.get()).is_ok() => Ok(MessageKind::Other),
            (None, Some(error)) if is_error_object(error) => Ok(MessageKind::Other),
            (None, None) => Err(MessageError::invalid_request(MISSING_BODY).with_id(id)),
            // Said to the peer it would be the answer to a request of its own.
            _ => Ok(MessageKind::InvalidResponse(answered.clone())),
        },
        (None, None) => Err(MessageError::invalid_request(MISSING_BODY)),
    }
}

const MISSING_BODY: &str = "a message has a `method`, a `result` or an `error`";

fn is_error_object(error: &RawValue) -> bool {
    serde_json::from_str::<ErrorData>(error.get()).is_ok()
}

fn parse_call_arguments(params: Option<&RawValue>) -> Result<RawArguments, String> {
    let params = params.map_or("{}", RawValue::get);
    let call: CallToolParams<'_> =
        parse_object(params).map_err(|error| format!("`params`: {error}"))?;
    for part in [call.meta, call.answers].into_iter().flatten() {
        check_unambiguous(part)?;
    }
    Ok(RawArguments(call.arguments.map_or("{}", RawValue::get).into()))
}

/// Looks at what the library would not: of two equal keys it takes the last, and a list of no
/// known page for the first one.
fn check_params(method: &str, params: Option<&RawValue>) -> Result<(), String> {
    let Some(params) = params.filter(|_| KNOWN_METHODS.contains(&method)) else { return Ok(()) };
    check_unambiguous(params)?;
    if method.ends_with("/list") {
        let PageParams { .. } =
            parse_object(params.get()).map_err(|error| format!("`params`: {error}"))?;
    }
    Ok(())
}

/// Whether every reader makes the same of it.
fn check_unambiguous(part: &RawValue) -> Result<(), String> {
    is_clear(part.get()).map_err(|error| format!("`params`: {error}"))
}

/// The bytes of a JSON text that stand in none of its strings.
pub(in super::super::mcp) fn outside_strings(text: &str) -> impl Iterator<Item = u8> {
    let (mut is_inside, mut is_escaped) = (false, false);
    text.bytes().filter(move |byte| {
        let was_inside = is_inside;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_inside => is_escaped = true,
            b'"' => is_inside = !is_inside,
            _ => {}
        }
        !was_inside && !is_inside
    })
}

/// Whether a JSON text is nested deeper than any that is meant.
pub(in super::super::mcp) fn is_too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    outside_strings(text).any(|byte| {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MAX_DEPTH
    })
}

/// Whether parameters say of which revision they are, as those of 2026-07-28 do.
fn says_version(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: serde_json::Map<String, Value>,
    }
    let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
    params.is_some_and(|it| it.meta.contains_key("io.modelcontextprotocol/protocolVersion"))
}

/// The requests of the protocol that the library reads.
const KNOWN_METHODS: &[&str] = &[
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Those of them that requests of 2026-07-28 do not know any more.
const REMOVED_METHODS: &[&str] =
    &["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Those of them that not every server has: what is wrong with their parameters matters only
/// where there are any.
const OPTIONAL_METHODS: &[&str] = &[
    "completion/complete",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// What is wrong with a request of which the library knows the method or the parameters not: the
/// latter where a server has the former.
pub(super) fn custom_request_error(method: &str, is_there: bool) -> ErrorData {
    match is_there && OPTIONAL_METHODS.contains(&method) {
        true => ErrorData::invalid_params(invalid_params_text(method, ""), None),
        false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None),
    }
}

/// Refuses a request whose method is known and whose parameters are not: the library takes it
/// for one that it does not know.
pub(super) fn reject_invalid_params(message: &ClientJsonRpcMessage) -> Result<(), MessageError> {
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::CustomRequest(custom) = &request.request
        && KNOWN_METHODS.contains(&&*custom.method)
        && !OPTIONAL_METHODS.contains(&&*custom.method)
    {
        let odd = custom
            .params
            .as_ref()
            .filter(|_| custom.method == "initialize")
            .and_then(describe_bad_initialize);
        return Err(invalid_params_error(&custom.method, odd, request.id.clone()));
    }
    Ok(())
}

/// What is wrong with the parameters of a client that begins, who hears of no other fault.
fn describe_bad_initialize(params: &Value) -> Option<String> {
    let can = params.get("capabilities").and_then(Value::as_object);
    let one = can.into_iter().flatten().find_map(|(name, value)| {
        let alone = json!({ name: value });
        let error = ClientCapabilities::deserialize(&alone).err()?;
        Some(format!("`capabilities.{}`: {error}", name.escape_debug()))
    });
    one.or_else(|| Some(InitializeRequestParams::deserialize(params).err()?.to_string()))
}

fn invalid_params_error(method: &str, odd: Option<String>, id: RequestId) -> MessageError {
    let odd = odd.map(|odd| format!(": {odd}")).unwrap_or_default();
    MessageError::new(ErrorCode::INVALID_PARAMS, invalid_params_text(method, &odd))
        .with_id(Some(id))
}

fn invalid_params_text(method: &str, odd: &str) -> String {
    format!("the `params` of `{method}` are not those of the protocol{odd}")
}

/// The message as the library can read it. It knows no arguments that are no object; those are
/// for the tool's own reader, which has them as they were written. An answer that is none is
/// one that says no, so that nobody waits for another.
pub(super) fn normalize_for_rmcp<'a>(text: &'a [u8], kind: &MessageKind) -> Cow<'a, [u8]> {
    match kind {
        MessageKind::ToolCall(RawArguments(arguments)) if !arguments.starts_with('{') => {}
        MessageKind::InvalidResponse(id) => {
            let mut no = MessageError::invalid_request("the answer has not the form of one");
            no.id = Some(id.clone());
            return Cow::Owned(no.to_response().to_string().into_bytes());
        }
        _ => return Cow::Borrowed(text),
    }
    let Ok(mut message) = serde_json::from_slice::<Value>(text) else { return Cow::Borrowed(text) };
    message["params"]["arguments"] = json!({});
    Cow::Owned(message.to_string().into_bytes())
}

/// The id of a message that wants an answer.
pub(super) fn request_id(text: &[u8]) -> Option<RequestId> {
    request_id_and_method(text).map(|(id, _)| id)
}

/// The id and the method of a message that wants an answer.
pub(super) fn request_id_and_method(text: &[u8]) -> Option<(RequestId, Cow<'_, str>)> {
    let envelope: Envelope<'_> = parse_object(str::from_utf8(text).ok()?).ok()?;
    Some((serde_json::from_str(envelope.id?.get()).ok()?, envelope.method?))
}

/// What is wrong with a message of which the protocol's library makes nothing; nothing where
/// that was no request.
pub(super) fn undecodable_error(text: &[u8]) -> Option<MessageError> {
    request_id_and_method(text).map(|(id, method)| invalid_params_error(&method, None, id))
}

/// Reads an object; a list of its values is not one.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    if text.trim_start().starts_with('[') {
        let _: Vec<&RawValue> = serde_json::from_str(text)?;
        return Err(serde::de::Error::custom("expected an object, and not a list"));
    }
    serde_json::from_str(text)
}

/// What is not an envelope is either no JSON or no message.
fn envelope_error(text: &str, error: &serde_json::Error) -> MessageError {
    let is_json = error.classify() == Category::Data
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_json {
        MessageError::invalid_request(format!("this is no message: {error}"))
    } else {
        MessageError::not_json()
    }
}

#[cfg(test)]
mod tests;
