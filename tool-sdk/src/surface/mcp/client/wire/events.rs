//! What a server over HTTP says in its answers, most of which are streams of events.
//!
//! The library reads the messages, and passes over an event that it cannot read or that is too
//! long. Where that was an answer, an answer that says so takes its place, see
//! [`unread`](super::unread). It knows no event with several messages either, as servers of
//! 2025-03-26 may send them; they are given to it one by one. And until a server has said who
//! it is, the library takes every event for a message, whatever type it has: what is of
//! another type is kept from it. An answer that is no stream is read in the same way.
//!
//! **Invariant:** a request that got an answer of HTTP is not waited for in vain: a no that names
//! no request is to the one that it answers.

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

use super::super::super::batch::{self, List};
use super::ears::Ears;
use super::post::{self, Answer, Envelope, post};
use super::{MAX_MESSAGE, listed, steady, unread};

type Headers = HashMap<HeaderName, HeaderValue>;
type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

/// How soon a server may have a stream that it ended begun again, in milliseconds.
const SOONEST: u64 = 100;

const NO_ANSWER: &str = "the server says something else in the place of an answer";

/// A client that misses no answer.
#[derive(Clone)]
pub(super) struct Attentive {
    pub(super) client: reqwest::Client,
    pub(super) ears: Arc<Ears>,
}

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
        let limit = MAX_MESSAGE;
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
        let is_list = listed::is_list(&message);
        let envelope = Envelope { session, token, headers };
        let posted = match post(&self.client, &uri, &message, envelope, longest).await? {
            Answer::Events(events, session) => {
                StreamableHttpPostResponse::Sse(readable(events, id, longest), session)
            }
            Answer::Whole(body, session) => whole(&body, id, session)?,
            Answer::Refused(error, session) => {
                StreamableHttpPostResponse::Json(JsonRpcMessage::error(error, id), session)
            }
            Answer::Accepted => match id {
                Some(id) => {
                    let why = "the server takes the message and gives no answer to it";
                    StreamableHttpPostResponse::Json(unread::answer(id, why), None)
                }
                None => StreamableHttpPostResponse::Accepted,
            },
        };
        Ok(if is_list { listed::noted(&self.ears, posted) } else { posted })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<()> {
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
        let client = self.client.clone();
        let open = move |last| -> BoxFuture<'static, _> {
            let (client, uri, session) = (client.clone(), Arc::clone(&uri), session.clone());
            let (token, headers) = (token.clone(), headers.clone());
            Box::pin(async move {
                let got = client.get_stream_with_max_sse_event_size(
                    uri, session, last, token, headers, longest,
                );
                Ok(readable(got.await?, None, longest))
            })
        };
        match last {
            // The rest of an answer, which the library asks for again by itself.
            Some(last) => open(Some(last)).await.map_err(steady::said_for_good),
            None => steady::steady(open, Arc::clone(&self.ears)).await,
        }
    }
}

/// What a body says that is no stream: a message, or several of a server of 2025-03-26.
fn whole(
    body: &[u8],
    id: Option<RequestId>,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse> {
    let body = unread::without_mark(body);
    let is_one = !batch::is_one(body);
    match (id, str::from_utf8(body)) {
        (Some(id), Ok(list)) if !is_one => {
            let mut events = heard(Sse::default().data(list), Some(&id));
            events.push(Sse::default().data(text(&unread::answer(id, NO_ANSWER))));
            let events = stream::iter(events.into_iter().map(Ok)).boxed();
            Ok(StreamableHttpPostResponse::Sse(events, session))
        }
        (id, _) => match unread::read(body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(own(message, id), session)),
            // Nobody waits for anything to be in it.
            Err(_) if id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(error.into()),
        },
    }
}

/// The same events, each of which the library can read; `id` is that of the request that they
/// answer.
fn readable(events: BoxedSseResponse, id: Option<RequestId>, longest: usize) -> BoxedSseResponse {
    let readable = move |event: std::result::Result<Sse, SseError>| match (event, &id) {
        (Ok(event), id) => heard(event, id.as_ref()).into_iter().map(Ok).collect(),
        (Err(error), Some(id)) if post::is_too_long(&error) => {
            let why = format_args!("the server sent a message of more than {longest} bytes");
            vec![Ok(Sse::default().data(text(&unread::answer(id.clone(), why))))]
        }
        (Err(error), _) => vec![Err(error)],
    };
    events.flat_map(move |event| stream::iter(readable(event))).boxed()
}

/// An event, or one for each of its messages, the last of which has its name.
fn heard(mut event: Sse, id: Option<&RequestId>) -> Vec<Sse> {
    event.retry = event.retry.map(|wait| wait.max(SOONEST));
    if !is_message(&event) {
        // Its name and when to come back count all the same.
        event.data = None;
    }
    let Some(data) = &event.data else { return vec![event] };
    let data = data.strip_prefix(unread::MARK).unwrap_or(data);
    if !batch::is_one(data.as_bytes()) {
        event.data = heard_as(data, id);
        return vec![event];
    }
    let mut messages = match serde_json::from_str(data) {
        Ok(List { messages, is_longer: false }) => {
            messages.into_iter().filter_map(|one| heard_as(one.get(), id)).collect()
        }
        Ok(_) => {
            let why = format_args!("the server sent more than {} messages at once", batch::MOST);
            id.map(|id| text(&unread::answer(id.clone(), why))).into_iter().collect()
        }
        Err(_) => Vec::new(),
    };
    event.data = messages.pop();
    let mut events: Vec<_> = messages.into_iter().map(|one| Sse::default().data(one)).collect();
    events.push(event);
    events
}

/// Whether an event is of the type that messages have, which is also that of events without one.
fn is_message(event: &Sse) -> bool {
    matches!(event.event.as_deref(), None | Some("" | "message"))
}

/// A message as the library can read it: another one stands in for what cannot be read, or does
/// not say what it answers. What answers something that was not asked here is none, and would
/// end the wait for the answer.
fn heard_as(message: &str, id: Option<&RequestId>) -> Option<String> {
    let stand_in = match serde_json::from_str::<ServerJsonRpcMessage>(message) {
        Ok(JsonRpcMessage::Error(error)) if error.id.is_none() && id.is_some() => {
            Some(named(JsonRpcMessage::Error(error), id))
        }
        Ok(JsonRpcMessage::Response(result)) if id.is_some_and(|id| !is_same(&result.id, id)) => {
            return None;
        }
        Ok(_) => None,
        Err(error) => unread::instead_of(message.as_bytes(), &error),
    };
    Some(stand_in.map_or_else(|| message.to_owned(), |stand_in| text(&stand_in)))
}

/// Whether both name one request. Some write a number as a text.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}

/// A no of a server that could not read who asked, as what it is: the answer to this request.
fn named(mut answer: ServerJsonRpcMessage, id: Option<&RequestId>) -> ServerJsonRpcMessage {
    if let JsonRpcMessage::Error(error) = &mut answer
        && error.id.is_none()
    {
        error.id = id.cloned();
    }
    answer
}

/// The one message that answers the request with this `id`: a no is always to it, whatever it
/// names, and a result of something else is none.
fn own(mut answer: ServerJsonRpcMessage, id: Option<RequestId>) -> ServerJsonRpcMessage {
    match (&mut answer, id) {
        (JsonRpcMessage::Error(error), Some(id)) => error.id = Some(id),
        (JsonRpcMessage::Response(result), Some(id)) if is_same(&result.id, &id) => {
            result.id = id;
        }
        (JsonRpcMessage::Response(_), Some(id)) => {
            return unread::answer(id, "the server gives a result of something else");
        }
        (_, Some(id)) => {
            return unread::answer(id, NO_ANSWER);
        }
        (_, None) => {}
    }
    answer
}

/// A message of ours is always JSON.
fn text(message: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
