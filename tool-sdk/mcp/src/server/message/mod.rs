//! Parses and validates one message of a client.
//!
//! The envelope is parsed once; the parameters are split into their members, whose values stay
//! text until the handler of the method decodes those that it needs. So the arguments of a call
//! reach the tool's own parser as the client wrote them.
//!
//! **Invariant:** a message with duplicate keys is never interpreted. serde would take the last of
//! two equal keys, other parsers the first.

use std::borrow::Cow;
use std::fmt;

use rmcp::model::{ErrorData, JsonObject, RequestId, RequestMetaObject};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;
use tool_sdk_core::internal::check_unambiguous;

use crate::json_rpc::{MAX_DEPTH, is_too_deep};

/// The maximum size of a message over stdio.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// A message of a client.
#[derive(Debug)]
pub(super) enum ClientMessage {
    Request(ClientRequest),
    Notification {
        method: String,
        params: MessageParams,
    },
    /// The response to a request of the server. An error has no id if the client could not read it.
    Response {
        id: Option<RequestId>,
        answer: Result<Value, ErrorData>,
    },
}

/// A request whose parameters are not decoded yet.
#[derive(Debug)]
pub(super) struct ClientRequest {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: MessageParams,
    pub(super) meta: RequestMetaObject,
    /// The size of the message in bytes.
    pub(super) size: usize,
}

/// Why a message is refused.
#[derive(Debug)]
pub(super) struct MessageError {
    /// The request's id, if it could be read.
    pub(super) id: Option<RequestId>,
    pub(super) error: Box<ErrorData>,
}

impl MessageError {
    pub(super) fn invalid_request(words: impl Into<Cow<'static, str>>) -> Self {
        Self { id: None, error: ErrorData::invalid_request(words, None).into() }
    }

    /// The message is too long; `front` is what was read of it.
    pub(super) fn too_long(front: &[u8]) -> Self {
        Self::invalid_request(format!("the message is longer than {MAX_MESSAGE_BYTES} bytes"))
            .with_id(MessageFront::parse(front).request_id())
    }

    /// The text is not JSON.
    pub(super) fn not_json() -> Self {
        Self { id: None, error: ErrorData::parse_error("the message is not JSON", None).into() }
    }

    fn invalid_params(id: &RequestId, words: impl Into<Cow<'static, str>>) -> Self {
        Self { id: Some(id.clone()), error: ErrorData::invalid_params(words, None).into() }
    }

    /// Sets the id of the request.
    pub(super) fn with_id(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }
}

/// Returns the error for a request whose id is still in flight.
pub(super) fn duplicate_id_error() -> ErrorData {
    ErrorData::invalid_request("a request with this `id` is still in flight", None)
}

/// Returns the error for a request that finds no room.
pub(super) fn too_many_requests_error() -> ErrorData {
    let words = "too many requests are waiting; retry after some of them are answered";
    ErrorData::invalid_request(words, None)
}

/// The members of a message that determine its kind.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct MessageEnvelope<'a> {
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

const MISSING_BODY: &str = "a message must have a `method`, a `result` or an `error`";

/// Parses a message. Notifications get no response, so the parameters of an invalid one count as
/// absent.
pub(super) fn parse_message(text: &[u8]) -> Result<ClientMessage, MessageError> {
    let text = str::from_utf8(text).map_err(|_| MessageError {
        id: None,
        error: ErrorData::parse_error("the message is not UTF-8", None).into(),
    })?;
    if is_too_deep(text) {
        return Err(MessageError::invalid_request(format!(
            "the message is nested deeper than {MAX_DEPTH} levels"
        )));
    }
    let envelope: MessageEnvelope<'_> =
        parse_object(text).map_err(|error| envelope_error(text, &error))?;
    if envelope.method.is_none()
        && let Some(error) = envelope.error
        && envelope.id.is_none_or(|id| id.get() == "null")
    {
        // JSON-RPC has no response to a response.
        return Ok(ClientMessage::Response { id: None, answer: parse_answer(None, Some(error)) });
    }
    let id = envelope.id.map(|id| serde_json::from_str::<RequestId>(id.get()));
    let Ok(id) = id.transpose() else {
        return Err(MessageError::invalid_request("`id` must be a string or an integer"));
    };
    if envelope.jsonrpc != "2.0" {
        return Err(MessageError::invalid_request("`jsonrpc` must be \"2.0\"").with_id(id));
    }
    match (envelope.method, id) {
        (Some(method), Some(id)) => {
            let params = MessageParams::parse(envelope.params)
                .map_err(|words| MessageError::invalid_params(&id, words))?;
            let meta = params.meta().map_err(|words| MessageError::invalid_params(&id, words))?;
            let (method, size) = (method.into_owned(), text.len());
            Ok(ClientMessage::Request(ClientRequest { id, method, params, meta, size }))
        }
        (Some(method), None) => Ok(ClientMessage::Notification {
            method: method.into_owned(),
            params: MessageParams::parse(envelope.params).unwrap_or_default(),
        }),
        (None, Some(id)) => match (envelope.result, envelope.error) {
            (None, None) => Err(MessageError::invalid_request(MISSING_BODY).with_id(Some(id))),
            (result, error) => {
                Ok(ClientMessage::Response { id: Some(id), answer: parse_answer(result, error) })
            }
        },
        (None, None) => Err(MessageError::invalid_request(MISSING_BODY)),
    }
}

/// Parses the response to a request of the server. An invalid response ends the request that waits
/// for it with an error; an error response with its id would look like one to the client's request.
fn parse_answer(result: Option<&RawValue>, error: Option<&RawValue>) -> Result<Value, ErrorData> {
    let invalid = || ErrorData::invalid_request("the client's response is invalid", None);
    match (result, error) {
        (Some(result), None) if check_unambiguous(result.get()).is_ok() => {
            serde_json::from_str(result.get()).map_err(|_| invalid())
        }
        (None, Some(error)) => Err(serde_json::from_str(error.get()).unwrap_or_else(|_| invalid())),
        _ => Err(invalid()),
    }
}

/// Parses an object. An array of the field values is refused, which serde would accept.
fn parse_object<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    if text.trim_start().starts_with('[') {
        let _: Vec<&RawValue> = serde_json::from_str(text)?;
        return Err(serde_json::Error::custom("expected an object, found an array"));
    }
    serde_json::from_str(text)
}

/// Distinguishes invalid JSON from an invalid message.
fn envelope_error(text: &str, error: &serde_json::Error) -> MessageError {
    let is_json =
        error.classify() == Category::Data && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_json {
        MessageError::invalid_request(format!("the message is not valid JSON-RPC: {error}"))
    } else {
        MessageError::not_json()
    }
}

/// The members of a request that its front names.
#[derive(Default)]
struct MessageFront {
    id: Option<RequestId>,
    has_method: bool,
}

impl MessageFront {
    /// Parses an incomplete message as far as possible.
    fn parse(text: &[u8]) -> Self {
        let mut front = Self::default();
        // Ends with an error, because the end is missing.
        let _ = (&mut serde_json::Deserializer::from_slice(text)).deserialize_map(&mut front);
        front
    }

    /// Returns the id if the message is a request.
    fn request_id(self) -> Option<RequestId> {
        self.id.filter(|_| self.has_method)
    }
}

impl<'de> Visitor<'de> for &mut MessageFront {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match &*name {
                "id" => self.id = Some(map.next_value()?),
                _ => {
                    self.has_method |= name == "method";
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The parameters of a message: the members of an object, with their values as text.
#[derive(Debug, Default)]
pub(super) struct MessageParams(Vec<(String, Box<RawValue>)>);

impl MessageParams {
    fn parse(text: Option<&RawValue>) -> Result<Self, String> {
        let Some(text) = text else { return Ok(Self::default()) };
        if !text.get().starts_with('{') {
            return Err("`params` must be an object".to_owned());
        }
        serde_json::from_str(text.get()).map_err(|error| format!("`params`: {error}"))
    }

    /// Returns the value of a member as text; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value).filter(|value| value.get() != "null")
    }

    /// Takes the text of a member out; `null` counts as absent.
    pub(super) fn take(&mut self, name: &str) -> Option<Box<str>> {
        self.get(name)?;
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1.into())
    }

    /// Decodes one member.
    pub(super) fn member<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ErrorData> {
        let Some(value) = self.get(name) else { return Ok(None) };
        check_value(value).and_then(|()| serde_json::from_str(value.get())).map(Some).map_err(
            |error| ErrorData::invalid_params(format!("`params`: `{name}`: {error}"), None),
        )
    }

    /// Decodes a member that must be present.
    pub(super) fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, ErrorData> {
        self.member(name)?.ok_or_else(|| {
            ErrorData::invalid_params(format!("`params`: missing field `{name}`"), None)
        })
    }

    /// Decodes all members as the parameters of `method`.
    pub(super) fn decode<T: DeserializeOwned>(&self, method: &str) -> Result<T, ErrorData> {
        let members = self.0.iter().map(|(name, value)| (name.as_str(), &**value));
        self.0
            .iter()
            .try_for_each(|(_, value)| check_value(value))
            .and_then(|()| T::deserialize(MapDeserializer::new(members)))
            .map_err(|error| {
                let words =
                    format!("the `params` of `{method}` do not match the protocol: {error}");
                ErrorData::invalid_params(words, None)
            })
    }

    fn meta(&self) -> Result<RequestMetaObject, String> {
        match self.member::<JsonObject>("_meta") {
            Ok(meta) => Ok(meta.unwrap_or_default().into()),
            Err(error) => Err(error.message.into_owned()),
        }
    }
}

/// Fails if a value has duplicate keys.
fn check_value(value: &RawValue) -> serde_json::Result<()> {
    match value.get().starts_with(['{', '[']) {
        true => check_unambiguous(value.get()),
        false => Ok(()),
    }
}

impl<'de> Deserialize<'de> for MessageParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = MessageParams;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MessageParams, A::Error> {
        let mut members = Vec::<(String, Box<RawValue>)>::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if members.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            members.push((name, value));
        }
        Ok(MessageParams(members))
    }
}

#[cfg(test)]
mod tests;
