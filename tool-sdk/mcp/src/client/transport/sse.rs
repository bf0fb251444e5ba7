//! An HTTP client for rmcp that turns every response of a server into messages that rmcp can read.
//!
//! rmcp skips events that it cannot parse or that are too long; here a response that says so takes
//! their place, see [`decode_fallback`](super::decode_fallback). rmcp does not know batches, which 2025-03-26 servers
//! may send; they are split. Before the handshake rmcp reads every event as a message; events of
//! other types are dropped. JSON bodies are handled in the same way.
//!
//! **Invariant:** a request that got an HTTP response does not wait in vain: an error without an id
//! is assigned to the request.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::http_post::{self, PostHeaders, PostResponse, post_message};
use super::notifications::NotificationHandler;
use super::task_support::keep_task_support;
use super::{MAX_MESSAGE_BYTES, decode_fallback, list_probe, sse_reconnect};
use crate::client::authorization::TokenSource;
use crate::json_rpc;
use crate::json_rpc::BatchMessages;

type Headers = HashMap<HeaderName, HeaderValue>;
type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

const UNAUTHORIZED: u16 = 401;

/// The shortest delay before a closed stream is reopened, in milliseconds.
const MIN_RETRY_MS: u64 = 100;

const WRONG_RESPONSE: &str = "the server sent something else instead of a response";

/// The HTTP client.
#[derive(Clone)]
pub(super) struct LenientHttpClient {
    pub(super) client: reqwest::Client,
    pub(super) notifications: Arc<NotificationHandler>,
    /// The tokens of OAuth; `None` where the host configured what authorizes the requests.
    pub(super) tokens: Option<Arc<TokenSource>>,
}

impl StreamableHttpClient for LenientHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse> {
        let limit = MAX_MESSAGE_BYTES;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, limit)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        longest: usize,
    ) -> Result<StreamableHttpPostResponse> {
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let is_list = list_probe::is_list_request(&message);
        let (client, uri, sent) = (&self.client, &*uri, &message);
        let send = |token: Option<String>| {
            let (session, headers) = (session.clone(), headers.clone());
            let envelope = PostHeaders { session, token, headers };
            post_message(client, uri, sent, envelope, longest)
        };
        let posted = match send_authorized(self.tokens.as_deref(), token, send).await? {
            PostResponse::Events(events, session) => {
                StreamableHttpPostResponse::Sse(decode_events(events, id, longest), session)
            }
            PostResponse::Body(body, session) => decode_body(&body, id, session)?,
            PostResponse::Error(error, session) => {
                StreamableHttpPostResponse::Json(JsonRpcMessage::error(error, id), session)
            }
            PostResponse::Accepted => match id {
                Some(id) => {
                    let why = "the server accepted the request without a response";
                    StreamableHttpPostResponse::Json(decode_fallback::error_response(id, why), None)
                }
                None => StreamableHttpPostResponse::Accepted,
            },
        };
        Ok(if is_list {
            list_probe::record_listed_names(&self.notifications, posted)
        } else {
            posted
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<()> {
        let token = current_token(self.tokens.as_deref(), token).await;
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse> {
        self.client.get_stream(uri, session, last, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        longest: usize,
    ) -> Result<BoxedSseResponse> {
        let (client, tokens) = (self.client.clone(), self.tokens.clone());
        let open = move |last: Option<String>| -> BoxFuture<'static, _> {
            let (client, uri, session) = (client.clone(), Arc::clone(&uri), session.clone());
            let (token, headers, tokens) = (token.clone(), headers.clone(), tokens.clone());
            Box::pin(async move {
                let get = |token: Option<String>| {
                    let (uri, session) = (Arc::clone(&uri), session.clone());
                    let (last, headers) = (last.clone(), headers.clone());
                    client.get_stream_with_max_sse_event_size(
                        uri, session, last, token, headers, longest,
                    )
                };
                let got = send_authorized(tokens.as_deref(), token, get).await?;
                Ok(decode_events(got, None, longest))
            })
        };
        match last {
            // The rest of a response, which rmcp requests again by itself.
            Some(last) => open(Some(last)).await.map_err(sse_reconnect::as_permanent_error),
            None => sse_reconnect::reconnecting_stream(open, Arc::clone(&self.notifications)).await,
        }
    }
}

/// Returns the token of a request: that of OAuth, or the configured one.
async fn current_token(tokens: Option<&TokenSource>, configured: Option<String>) -> Option<String> {
    match tokens {
        Some(tokens) => tokens.current_token().await,
        None => configured,
    }
}

/// Sends a request with the current token, and once more with a renewed one if the server rejects
/// the token. A rejected request did not run.
async fn send_authorized<T, F>(
    tokens: Option<&TokenSource>,
    configured: Option<String>,
    send: impl Fn(Option<String>) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let token = current_token(tokens, configured).await;
    let sent = send(token.clone()).await;
    let (Some(tokens), Err(error)) = (tokens, &sent) else { return sent };
    let renewed = match error {
        StreamableHttpError::AuthRequired(error) => {
            tokens.token_after_rejection(token.as_deref(), &error.www_authenticate_header).await
        }
        StreamableHttpError::HttpStatus(error) if error.status == UNAUTHORIZED => {
            tokens.token_after_rejection(token.as_deref(), "").await
        }
        StreamableHttpError::InsufficientScope(error) => {
            tokens.record_missing_scopes(&error.www_authenticate_header).await;
            None
        }
        _ => None,
    };
    let Some(renewed) = renewed else { return sent };
    let sent = send(Some(renewed)).await;
    if let Err(StreamableHttpError::AuthRequired(error)) = &sent {
        // Without a token to renew, so that it is not renewed again.
        tokens.token_after_rejection(None, &error.www_authenticate_header).await;
    }
    sent
}

/// Reads a JSON body: a message, or a batch of a 2025-03-26 server.
fn decode_body(
    body: &[u8],
    id: Option<RequestId>,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse> {
    let body = decode_fallback::strip_byte_order_mark(body);
    let is_one = !json_rpc::is_batch(body);
    match (id, str::from_utf8(body)) {
        (Some(id), Ok(list)) if !is_one => {
            let mut events = decode_event(Sse::default().data(list), Some(&id));
            events.push(
                Sse::default().data(to_json(&decode_fallback::error_response(id, WRONG_RESPONSE))),
            );
            let events = stream::iter(events.into_iter().map(Ok)).boxed();
            Ok(StreamableHttpPostResponse::Sse(events, session))
        }
        (id, _) => match decode_fallback::decode_message(body) {
            Ok(message) => {
                Ok(StreamableHttpPostResponse::Json(match_response(message, id), session))
            }
            // The message was a notification, which needs no response.
            Err(_) if id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(error.into()),
        },
    }
}

/// Converts each event into one that rmcp can read; `id` is the request that the stream answers.
fn decode_events(
    events: BoxedSseResponse,
    id: Option<RequestId>,
    longest: usize,
) -> BoxedSseResponse {
    let readable = move |event: std::result::Result<Sse, SseError>| match (event, &id) {
        (Ok(event), id) => decode_event(event, id.as_ref()).into_iter().map(Ok).collect(),
        (Err(error), Some(id)) if http_post::is_too_long(&error) => {
            let why = format_args!("the server sent a message of more than {longest} bytes");
            vec![
                Ok(Sse::default().data(to_json(&decode_fallback::error_response(id.clone(), why)))),
            ]
        }
        (Err(error), _) => vec![Err(error)],
    };
    events.flat_map(move |event| stream::iter(readable(event))).boxed()
}

/// Splits an event into one per message; the last one keeps the event id.
fn decode_event(mut event: Sse, id: Option<&RequestId>) -> Vec<Sse> {
    event.retry = event.retry.map(|wait| wait.max(MIN_RETRY_MS));
    if !is_message(&event) {
        // The event id and the retry delay still count.
        event.data = None;
    }
    let Some(data) = &event.data else { return vec![event] };
    let data = data.strip_prefix(decode_fallback::BYTE_ORDER_MARK).unwrap_or(data);
    if !json_rpc::is_batch(data.as_bytes()) {
        event.data = decode_message(data, id);
        return vec![event];
    }
    let mut messages = match serde_json::from_str(data) {
        Ok(BatchMessages { messages, is_longer: false }) => {
            messages.into_iter().filter_map(|one| decode_message(one.get(), id)).collect()
        }
        Ok(_) => {
            let why = format_args!(
                "the server sent more than {} messages at once",
                json_rpc::MAX_BATCH_MESSAGES
            );
            id.map(|id| to_json(&decode_fallback::error_response(id.clone(), why)))
                .into_iter()
                .collect()
        }
        Err(_) => Vec::new(),
    };
    event.data = messages.pop();
    let mut events: Vec<_> = messages.into_iter().map(|one| Sse::default().data(one)).collect();
    events.push(event);
    events
}

/// Whether an event has the type `message`, which is the default.
fn is_message(event: &Sse) -> bool {
    matches!(event.event.as_deref(), None | Some("" | "message"))
}

/// Converts a message into one that rmcp can read. Returns `None` for a response to another request,
/// which would end the wait for the right one.
fn decode_message(message: &str, id: Option<&RequestId>) -> Option<String> {
    let message = &*String::from_utf8_lossy(&keep_task_support(message.as_bytes())).into_owned();
    let stand_in = match serde_json::from_str::<ServerJsonRpcMessage>(message) {
        Ok(JsonRpcMessage::Error(error)) if error.id.is_none() && id.is_some() => {
            Some(assign_request_id(JsonRpcMessage::Error(error), id))
        }
        Ok(JsonRpcMessage::Response(result))
            if id.is_some_and(|id| !is_same_id(&result.id, id)) =>
        {
            return None;
        }
        Ok(_) => None,
        Err(error) => decode_fallback::decode_fallback(message.as_bytes(), &error),
    };
    Some(stand_in.map_or_else(|| message.to_owned(), |stand_in| to_json(&stand_in)))
}

/// Whether both ids are equal; some servers write a number as a string.
fn is_same_id(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}

/// Assigns an error without an id to the request.
fn assign_request_id(
    mut answer: ServerJsonRpcMessage,
    id: Option<&RequestId>,
) -> ServerJsonRpcMessage {
    if let JsonRpcMessage::Error(error) = &mut answer
        && error.id.is_none()
    {
        error.id = id.cloned();
    }
    answer
}

/// Assigns a response to the request with this `id`; a result with another id becomes an error.
fn match_response(mut answer: ServerJsonRpcMessage, id: Option<RequestId>) -> ServerJsonRpcMessage {
    match (&mut answer, id) {
        (JsonRpcMessage::Error(error), Some(id)) => error.id = Some(id),
        (JsonRpcMessage::Response(result), Some(id)) if is_same_id(&result.id, &id) => {
            result.id = id;
        }
        (JsonRpcMessage::Response(_), Some(id)) => {
            return decode_fallback::error_response(
                id,
                "the server sent the result of another request",
            );
        }
        (_, Some(id)) => {
            return decode_fallback::error_response(id, WRONG_RESPONSE);
        }
        (_, None) => {}
    }
    answer
}

/// Serializes a message, which cannot fail.
fn to_json(message: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
