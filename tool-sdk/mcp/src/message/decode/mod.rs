//! Decodes a message into rmcp's types, selected by its method.
//!
//! rmcp's own deserializer is an untagged enum: it tries every message type in turn, which needs a
//! deserializer for each type and buffering mode and makes up a tenth of a small server. Here the
//! method selects the type, so only one is tried.
//!
//! **Invariant:** the result is the one that rmcp's deserializer would return.

// Log messages are deprecated in the protocol, but current clients still use them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use rmcp::model::{
    CancelledNotification, ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult,
    CreateMessageResult, CustomNotification, CustomRequest, CustomResult, DiscoverRequestParams,
    ElicitResult, EmptyResult, Extensions, GetExtensions as _, InitializedNotification, JsonObject,
    JsonRpcMessage, ListRootsResult, Notification, NotificationMetaObject, PaginatedRequestParams,
    PingRequest, ProgressNotification, Request, RequestId, RequestMetaObject, RequestOptionalParam,
    RootsListChangedNotification,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Envelope, parse_object};

/// Decodes a validated message. Returns `None` if rmcp would not accept it.
pub(crate) fn decode_message(text: &[u8]) -> Option<ClientJsonRpcMessage> {
    let envelope: Envelope<'_> = parse_object(str::from_utf8(text).ok()?).ok()?;
    let id = envelope.id.map(|id| serde_json::from_str::<RequestId>(id.get()));
    let id = id.transpose().ok()?;
    Some(match (envelope.method, id, envelope.result, envelope.error) {
        (Some(method), Some(id), None, None) => JsonRpcMessage::request(
            decode_request(&method, MessageParams::parse(envelope.params)?),
            id,
        ),
        (Some(method), None, None, None) => JsonRpcMessage::notification(decode_notification(
            &method,
            MessageParams::parse(envelope.params)?,
        )),
        (None, Some(id), Some(result), None) => {
            let result = serde_json::from_str(result.get()).ok()?;
            JsonRpcMessage::response(decode_result(result), id)
        }
        (None, Some(id), None, Some(error)) => {
            JsonRpcMessage::error(serde_json::from_str(error.get()).ok()?, Some(id))
        }
        _ => return None,
    })
}

/// The parameters of a message, with `_meta` split off.
#[derive(Default)]
struct MessageParams {
    params: Option<Value>,
    meta: Option<JsonObject>,
}

impl MessageParams {
    fn parse(written: Option<&RawValue>) -> Option<Self> {
        let Some(written) = written else { return Some(Self::default()) };
        let mut own: JsonObject = serde_json::from_str(written.get()).ok()?;
        let meta = match own.shift_remove("_meta") {
            None | Some(Value::Null) => None,
            Some(Value::Object(meta)) => Some(meta),
            Some(_) => return None,
        };
        Some(Self { params: Some(Value::Object(own)), meta })
    }

    /// Moves `_meta` to the extensions, where rmcp expects it.
    fn take_meta<Meta>(&mut self) -> Extensions
    where
        Meta: From<JsonObject> + Clone + Send + Sync + 'static,
    {
        let mut extensions = Extensions::new();
        if let Some(meta) = self.meta.take() {
            extensions.insert(Meta::from(meta));
        }
        extensions
    }
}

fn decode_request(method: &str, mut params: MessageParams) -> ClientRequest {
    let extensions = params.take_meta::<RequestMetaObject>();
    match decode_known_request(method, params.params.as_ref()) {
        Some(mut request) => {
            *request.extensions_mut() = extensions;
            request
        }
        None => ClientRequest::CustomRequest(CustomRequest {
            method: method.to_owned(),
            params: params.params,
            extensions,
        }),
    }
}

/// Decodes a request with a known method. Task and skill methods count as unknown, because this
/// server has neither.
fn decode_known_request(method: &str, params: Option<&Value>) -> Option<ClientRequest> {
    Some(match method {
        "completion/complete" => ClientRequest::CompleteRequest(parse_params(params)?),
        "initialize" => ClientRequest::InitializeRequest(parse_params(params)?),
        "logging/setLevel" => ClientRequest::SetLevelRequest(parse_params(params)?),
        "ping" => ClientRequest::PingRequest(PingRequest::default()),
        "prompts/get" => ClientRequest::GetPromptRequest(parse_params(params)?),
        "prompts/list" => ClientRequest::ListPromptsRequest(parse_page_params(params)),
        "resources/list" => ClientRequest::ListResourcesRequest(parse_page_params(params)),
        "resources/read" => ClientRequest::ReadResourceRequest(parse_params(params)?),
        "resources/subscribe" => ClientRequest::SubscribeRequest(parse_params(params)?),
        "resources/templates/list" => {
            ClientRequest::ListResourceTemplatesRequest(parse_page_params(params))
        }
        "resources/unsubscribe" => ClientRequest::UnsubscribeRequest(parse_params(params)?),
        "server/discover" => {
            // `server/discover` has no parameters; unknown ones are ignored.
            params?;
            ClientRequest::DiscoverRequest(Request::new(DiscoverRequestParams {}))
        }
        "subscriptions/listen" => ClientRequest::SubscriptionsListenRequest(parse_params(params)?),
        "tools/call" => ClientRequest::CallToolRequest(parse_params(params)?),
        "tools/list" => ClientRequest::ListToolsRequest(parse_page_params(params)),
        _ => return None,
    })
}

fn parse_params<'a, M: Default, P: Deserialize<'a>>(
    params: Option<&'a Value>,
) -> Option<Request<M, P>> {
    P::deserialize(params?).ok().map(Request::new)
}

fn parse_page_params<M: Default>(
    params: Option<&Value>,
) -> RequestOptionalParam<M, PaginatedRequestParams> {
    let params = params.and_then(|params| PaginatedRequestParams::deserialize(params).ok());
    RequestOptionalParam { method: M::default(), params, extensions: Extensions::default() }
}

fn decode_notification(method: &str, mut params: MessageParams) -> ClientNotification {
    let extensions = params.take_meta::<NotificationMetaObject>();
    match decode_known_notification(method, params.params.as_ref()) {
        Some(mut notification) => {
            *notification.extensions_mut() = extensions;
            notification
        }
        None => ClientNotification::CustomNotification(CustomNotification {
            method: method.to_owned(),
            params: params.params,
            extensions,
        }),
    }
}

fn decode_known_notification(method: &str, params: Option<&Value>) -> Option<ClientNotification> {
    Some(match method {
        "notifications/cancelled" => {
            let cancelled: CancelledNotification = parse_optional_params(params)?;
            ClientNotification::CancelledNotification(cancelled)
        }
        "notifications/initialized" => {
            ClientNotification::InitializedNotification(InitializedNotification::default())
        }
        "notifications/progress" => {
            let progress: ProgressNotification = parse_optional_params(params)?;
            ClientNotification::ProgressNotification(progress)
        }
        "notifications/roots/list_changed" => {
            let changed = RootsListChangedNotification::default();
            ClientNotification::RootsListChangedNotification(changed)
        }
        _ => return None,
    })
}

/// Missing parameters count as an empty object.
fn parse_optional_params<M, P>(params: Option<&Value>) -> Option<Notification<M, P>>
where
    M: Default,
    P: for<'a> Deserialize<'a>,
{
    let none = Value::Object(JsonObject::new());
    P::deserialize(params.unwrap_or(&none)).ok().map(Notification::new)
}

/// Decodes the response to a request of the server: the first type that fits, in rmcp's order.
fn decode_result(result: Value) -> ClientResult {
    if let Ok(sampled) = CreateMessageResult::deserialize(&result) {
        ClientResult::CreateMessageResult(Box::new(sampled))
    } else if let Ok(roots) = ListRootsResult::deserialize(&result) {
        ClientResult::ListRootsResult(roots)
    } else if let Ok(filled) = ElicitResult::deserialize(&result) {
        ClientResult::ElicitResult(filled)
    } else if let Ok(nothing) = EmptyResult::deserialize(&result) {
        ClientResult::EmptyResult(nothing)
    } else {
        ClientResult::CustomResult(CustomResult(result))
    }
}

#[cfg(test)]
mod tests;
