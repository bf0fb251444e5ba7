//! What a server says in streams of events.
//!
//! The library reads them, and passes over an event that it cannot read or that is too long.
//! Where that was an answer, an answer that says so takes its place, see
//! [`unread`](super::unread).

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::unread;

type Headers = HashMap<HeaderName, HeaderValue>;
type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

/// How soon a server may have a stream that it ended begun again, in milliseconds.
const SOONEST: u64 = 100;

/// A client that misses no answer.
#[derive(Clone)]
pub(super) struct Attentive(pub(super) reqwest::Client);

impl StreamableHttpClient for Attentive {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse> {
        self.0.post_message(uri, message, session, token, headers).await
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
        let posted = self
            .0
            .post_message_with_max_sse_event_size(uri, message, session, token, headers, longest);
        Ok(match posted.await? {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(readable(events, id, longest), session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<()> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse> {
        self.0.get_stream(uri, session, last, token, headers).await
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
        let got =
            self.0.get_stream_with_max_sse_event_size(uri, session, last, token, headers, longest);
        Ok(readable(got.await?, None, longest))
    }
}

/// The same events, each of which the library can read; `id` is that of the request that they
/// answer.
fn readable(events: BoxedSseResponse, id: Option<RequestId>, longest: usize) -> BoxedSseResponse {
    let readable = move |event: std::result::Result<Sse, SseError>| match (event, &id) {
        (Ok(event), _) => Ok(heard(event)),
        (Err(error), Some(id)) if is_too_long(&error) => {
            let why = format_args!("the server sent a message of more than {longest} bytes");
            Ok(Sse::default().data(text(&unread::answer(id.clone(), why))))
        }
        (Err(error), _) => Err(error),
    };
    events.map(readable).boxed()
}

fn heard(mut event: Sse) -> Sse {
    event.retry = event.retry.map(|wait| wait.max(SOONEST));
    if let Some(data) = &event.data
        && let Err(error) = serde_json::from_str::<ServerJsonRpcMessage>(data)
        && let Some(answer) = unread::instead_of(data.as_bytes(), &error)
    {
        event.data = Some(text(&answer));
    }
    event
}

/// What the library calls it is known to itself alone.
fn is_too_long(error: &SseError) -> bool {
    matches!(error, SseError::Body(error) if error.to_string().contains("exceeded the maximum size"))
}

/// A message of ours is always JSON.
fn text(message: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
