//! Validates a client's message before rmcp parses it.
//!
//! rmcp takes the last of two equal keys. So the text is parsed here first: an invalid message is
//! refused with a reason, and the arguments of a call are passed on as text, so that the tool's own
//! parser validates them.
//!
//! **Invariant:** a message with duplicate keys is never interpreted.

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
use tool_sdk_core::internal::check_unambiguous;

pub(super) use self::decode::decode_message;

/// The maximum size of a message over stdio.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// The maximum nesting depth of a message.
const MAX_DEPTH: usize = 100;

/// The arguments of a call, as the client wrote them.
#[derive(Clone, Debug)]
pub(super) struct RawArguments(pub(super) Box<str>);

/// The members of a message that determine its kind.
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

/// Deserializes a member that is present, even if it is null.
fn deserialize_present<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// The parameters of `tools/call`.
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

/// The parameters of a list request.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct PageParams<'a> {
    #[serde(borrow, rename = "cursor")]
    _cursor: Option<Cow<'a, str>>,
}

/// Why a message is invalid.
#[derive(Debug)]
pub(super) struct MessageError {
    /// The request's id, if it could be read.
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
        Self::invalid_request(format!("the message is longer than {MAX_MESSAGE_BYTES} bytes"))
    }

    /// A request with this id is still in flight.
    pub(super) fn duplicate_id(id: Option<RequestId>) -> Self {
        Self::invalid_request("a request with this `id` is still in flight").with_id(id)
    }

    /// The queue of waiting requests is full.
    pub(super) fn too_many_requests(id: Option<RequestId>) -> Self {
        let words = "too many requests are waiting; retry after some of them are answered";
        Self::invalid_request(words).with_id(id)
    }

    /// The text is not JSON.
    pub(super) fn not_json() -> Self {
        Self::new(ErrorCode::PARSE_ERROR, "the message is not JSON")
    }

    /// Sets the id of the request.
    pub(super) fn with_id(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }

    /// Returns true if the id of the request is known.
    pub(super) fn has_request_id(&self) -> bool {
        self.id.is_some()
    }

    /// Returns true if the method is unknown.
    pub(super) fn is_method_not_found(&self) -> bool {
        self.code == ErrorCode::METHOD_NOT_FOUND
    }

    /// Returns the JSON-RPC error response.
    pub(super) fn to_response(&self) -> Value {
        let error = json!({ "code": self.code, "message": self.message });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }
}

/// The kind of a message, as far as it matters before parsing.
#[derive(Debug)]
pub(super) enum MessageKind {
    /// `initialize`.
    Initialize,
    ToolCall(RawArguments),
    /// A response to a request of the server that does not have the form of one.
    InvalidResponse(RequestId),
    Other,
}

/// Validates a message. Notifications get no response, so an invalid notification is not an error
/// here.
pub(super) fn validate_message(text: &[u8]) -> Result<MessageKind, MessageError> {
    let text = str::from_utf8(text)
        .map_err(|_| MessageError::new(ErrorCode::PARSE_ERROR, "the message is not UTF-8"))?;
    if is_too_deep(text) {
        return Err(MessageError::invalid_request(format!(
            "the message is nested deeper than {MAX_DEPTH} levels"
        )));
    }
    let envelope: Envelope<'_> =
        parse_object(text).map_err(|error| envelope_error(text, &error))?;
    let id = envelope.id.map(|id| serde_json::from_str::<RequestId>(id.get()));
    let Ok(id) = id.transpose() else {
        return Err(MessageError::invalid_request("`id` must be a string or an integer"));
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
            let words = format!("`{method}` does not exist in protocol version 2026-07-28");
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
            (Some(result), None) if check_unambiguous(result.get()).is_ok() => {
                Ok(MessageKind::Other)
            }
            (None, Some(error)) if is_error_object(error) => Ok(MessageKind::Other),
            (None, None) => Err(MessageError::invalid_request(MISSING_BODY).with_id(id)),
            // An error with this id would look like the response to a request of the client.
            _ => Ok(MessageKind::InvalidResponse(answered.clone())),
        },
        (None, None) => Err(MessageError::invalid_request(MISSING_BODY)),
    }
}

const MISSING_BODY: &str = "a message must have a `method`, a `result` or an `error`";

fn is_error_object(error: &RawValue) -> bool {
    serde_json::from_str::<ErrorData>(error.get()).is_ok()
}

fn parse_call_arguments(params: Option<&RawValue>) -> Result<RawArguments, String> {
    let params = params.map_or("{}", RawValue::get);
    let call: CallToolParams<'_> =
        parse_object(params).map_err(|error| format!("`params`: {error}"))?;
    for part in [call.meta, call.answers].into_iter().flatten() {
        check_params_unambiguous(part)?;
    }
    Ok(RawArguments(call.arguments.map_or("{}", RawValue::get).into()))
}

/// Checks what rmcp does not: duplicate keys (rmcp takes the last one), and list parameters with an
/// invalid cursor (rmcp returns the first page).
fn check_params(method: &str, params: Option<&RawValue>) -> Result<(), String> {
    let Some(params) = params.filter(|_| KNOWN_METHODS.contains(&method)) else { return Ok(()) };
    check_params_unambiguous(params)?;
    if method.ends_with("/list") {
        let PageParams { .. } =
            parse_object(params.get()).map_err(|error| format!("`params`: {error}"))?;
    }
    Ok(())
}

/// Fails on duplicate keys, which parsers interpret differently.
fn check_params_unambiguous(part: &RawValue) -> Result<(), String> {
    check_unambiguous(part.get()).map_err(|error| format!("`params`: {error}"))
}

/// Returns the bytes of a JSON text outside of strings.
pub(crate) fn outside_strings(text: &str) -> impl Iterator<Item = u8> {
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

/// Returns true if a JSON text is nested deeper than the limit.
pub(crate) fn is_too_deep(text: &str) -> bool {
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

/// Returns true if the parameters state their protocol version, as those of 2026-07-28 do.
fn says_version(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: serde_json::Map<String, Value>,
    }
    let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
    params.is_some_and(|it| it.meta.contains_key("io.modelcontextprotocol/protocolVersion"))
}

/// The request methods that rmcp parses.
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

/// The methods that 2026-07-28 removed.
const REMOVED_METHODS: &[&str] =
    &["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The methods that not every server supports. Their parameters are only validated if the server
/// supports them.
const OPTIONAL_METHODS: &[&str] = &[
    "completion/complete",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// Returns the error for a request that rmcp could not parse: invalid parameters if the server
/// supports the method, otherwise an unknown method.
pub(super) fn custom_request_error(method: &str, is_there: bool) -> ErrorData {
    match is_there && OPTIONAL_METHODS.contains(&method) {
        true => ErrorData::invalid_params(invalid_params_text(method, ""), None),
        false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None),
    }
}

/// Fails if the method is known but rmcp could not parse the parameters. rmcp would report such a
/// request as an unknown method.
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

/// Describes what is wrong with the parameters of `initialize`, because such a client gets no other
/// error.
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
    format!("the `params` of `{method}` do not match the protocol{odd}")
}

/// Returns the message in a form that rmcp can parse. rmcp only accepts objects as arguments;
/// others are replaced, and the tool's own parser gets the original text. An invalid response is
/// replaced by an error response, so that the waiting request ends.
pub(super) fn normalize_for_rmcp<'a>(text: &'a [u8], kind: &MessageKind) -> Cow<'a, [u8]> {
    match kind {
        MessageKind::ToolCall(RawArguments(arguments)) if !arguments.starts_with('{') => {}
        MessageKind::InvalidResponse(id) => {
            let mut no = MessageError::invalid_request("the client's response is invalid");
            no.id = Some(id.clone());
            return Cow::Owned(no.to_response().to_string().into_bytes());
        }
        _ => return Cow::Borrowed(text),
    }
    let Ok(mut message) = serde_json::from_slice::<Value>(text) else { return Cow::Borrowed(text) };
    message["params"]["arguments"] = json!({});
    Cow::Owned(message.to_string().into_bytes())
}

/// Returns the id if the message is a request.
pub(super) fn request_id(text: &[u8]) -> Option<RequestId> {
    request_id_and_method(text).map(|(id, _)| id)
}

/// Returns the id and the method if the message is a request.
pub(super) fn request_id_and_method(text: &[u8]) -> Option<(RequestId, Cow<'_, str>)> {
    let envelope: Envelope<'_> = parse_object(str::from_utf8(text).ok()?).ok()?;
    Some((serde_json::from_str(envelope.id?.get()).ok()?, envelope.method?))
}

/// Returns the error for a message that rmcp cannot parse; `None` if it is not a request.
pub(super) fn undecodable_error(text: &[u8]) -> Option<MessageError> {
    request_id_and_method(text).map(|(id, method)| invalid_params_error(&method, None, id))
}

/// Parses an object. An array of the field values is refused, which serde would accept.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    if text.trim_start().starts_with('[') {
        let _: Vec<&RawValue> = serde_json::from_str(text)?;
        return Err(serde::de::Error::custom("expected an object, found an array"));
    }
    serde_json::from_str(text)
}

/// Distinguishes invalid JSON from an invalid message.
fn envelope_error(text: &str, error: &serde_json::Error) -> MessageError {
    let is_json = error.classify() == Category::Data
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_json {
        MessageError::invalid_request(format!("the message is not valid JSON-RPC: {error}"))
    } else {
        MessageError::not_json()
    }
}

#[cfg(test)]
mod tests;
