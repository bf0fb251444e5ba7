//! The events of one call as server-sent events, its result or problem as the last one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde_json::Value;
use tool_sdk_core::{Subscription, ToolEvent};

use super::event_hub::EventHub;
use super::event_log::EventJson;
use super::metrics::SubscriberGuard;
use super::response::{CALL_ID, CallReply};
use super::running_calls::CallHandle;

/// Proxies close a response that is idle for about 60 s, so a comment is sent in between.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Returns the response that streams a running call. Dropping it cancels the call, unless the
/// handle is detached.
pub(super) fn respond(
    handle: CallHandle,
    events: Subscription,
    subscriber: SubscriberGuard,
    hub: Arc<EventHub>,
) -> Response {
    let id = handle.id.clone();
    let updates = CallUpdates::new(handle, events, subscriber);
    let updates = stream::unfold(Some((updates, hub)), |state| async move {
        let (mut updates, hub) = state?;
        match updates.next().await {
            StreamItem::Event { seq, event } => {
                Some((sse_event(&EventJson::new(&event), seq, &hub), Some((updates, hub))))
            }
            StreamItem::Reply(reply) => Some((reply_event(&reply), None)),
        }
    });
    sse_response(updates, &id)
}

/// Returns a stream of the result alone, for a call that was made before.
pub(super) fn respond_with_result(mut handle: CallHandle) -> Response {
    let id = handle.id.clone();
    let reply = stream::once(async move { reply_event(&*handle.wait().await) });
    sse_response(reply, &id)
}

/// Returns a stream of events as a response, with keep-alive comments.
pub(super) fn sse_response(
    events: impl Stream<Item = Event> + Send + 'static,
    call: &str,
) -> Response {
    use futures_util::StreamExt as _;
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    let events = events.map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    let headers = response.headers_mut();
    // Proxies such as nginx would hold the events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    if let Ok(value) = HeaderValue::try_from(call)
        && !call.is_empty()
    {
        headers.insert(CALL_ID, value);
    }
    response
}

/// Returns an event of a tool as a server-sent event, named after its type.
pub(super) fn sse_event(json: &EventJson, seq: u64, hub: &EventHub) -> Event {
    Event::default().id(hub.event_id(seq)).event(&json.name).data(&json.text)
}

fn reply_event(reply: &CallReply) -> Event {
    let name = if reply.is_result() { "result" } else { "problem" };
    Event::default().event(name).data(&reply.body)
}

/// The events of a running call, and its reply.
pub(super) struct CallUpdates {
    handle: CallHandle,
    events: Subscription,
    reply: Option<Arc<CallReply>>,
    _subscriber: SubscriberGuard,
}

pub(super) enum StreamItem {
    /// An event as JSON, with its number.
    Event {
        seq: u64,
        event: Value,
    },
    Reply(Arc<CallReply>),
}

impl CallUpdates {
    pub(super) fn new(
        handle: CallHandle,
        events: Subscription,
        subscriber: SubscriberGuard,
    ) -> Self {
        Self { handle, events, reply: None, _subscriber: subscriber }
    }

    fn render_event(&self, event: &ToolEvent) -> StreamItem {
        let seq = event.seq;
        let mut event = serde_json::to_value(event).unwrap_or_default();
        if let Some(rendering) = &self.handle.rendering {
            rendering.render_event(&mut event);
        }
        StreamItem::Event { seq, event }
    }

    /// Waits for the next event; after the last one comes the reply.
    pub(super) async fn next(&mut self) -> StreamItem {
        if self.reply.is_none() {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return self.render_event(&event),
                reply = self.handle.wait() => self.reply = Some(reply),
            }
        }
        // The events of a call are queued before its reply.
        match (self.events.try_recv(), &self.reply) {
            (None, Some(reply)) => StreamItem::Reply(Arc::clone(reply)),
            (Some(event), _) => self.render_event(&event),
            (None, None) => StreamItem::Reply(self.handle.wait().await),
        }
    }
}
