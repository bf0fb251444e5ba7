//! SSE reconnect: the stream on which an older HTTP server sends notifications and requests.
//!
//! Servers and proxies close it at any time. It is reopened for as long as it is read. Notifications
//! may have been lost meanwhile, so the tools are listed again, unless the server numbers its events
//! and resumes after the last one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpError};
use sse_stream::Sse;
use tokio::time::sleep;

use super::backoff::Backoff;
use super::notifications::NotificationHandler;

type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

/// Opens the stream after the event with this id.
type OpenStream =
    Box<dyn Fn(Option<String>) -> BoxFuture<'static, Result<BoxedSseResponse>> + Send>;

const NOT_IMPLEMENTED: u16 = 501;

/// The shortest delay that a server can ask for, so that a server that closes each stream at once
/// does not keep the client busy.
const MIN_RETRY: Duration = Duration::from_millis(100);

/// A stream that reconnects.
struct ReconnectingStream {
    open: OpenStream,
    notifications: Arc<NotificationHandler>,
    events: Option<BoxedSseResponse>,
    /// The id of the last event that has one.
    last_event_id: Option<String>,
    /// The delay that the server asks for, in milliseconds.
    retry: Option<u64>,
    backoff: Backoff,
}

/// Returns the stream that `open` opens, reconnecting without end.
///
/// # Errors
///
/// Fails where the server has no such stream.
pub(super) async fn reconnecting_stream(
    open: impl Fn(Option<String>) -> BoxFuture<'static, Result<BoxedSseResponse>> + Send + 'static,
    notifications: Arc<NotificationHandler>,
) -> Result<BoxedSseResponse> {
    let events = match open(None).await {
        Ok(events) => Some(events),
        Err(error) if is_permanent(&error) => return Err(error),
        Err(_) => None,
    };
    let (open, pause) = (Box::new(open), Backoff::new());
    let steady = ReconnectingStream {
        open,
        notifications,
        events,
        last_event_id: None,
        retry: None,
        backoff: pause,
    };
    let events = stream::unfold(steady, |mut steady| async move {
        let event = steady.next_event().await?;
        Some((Ok(event), steady))
    });
    Ok(events.boxed())
}

impl ReconnectingStream {
    /// Returns the next event; `None` once the server says that it has no such stream.
    async fn next_event(&mut self) -> Option<Sse> {
        loop {
            let event: Option<std::result::Result<Sse, SseError>> = match &mut self.events {
                Some(events) => events.next().await,
                None => None,
            };
            let Some(Ok(event)) = event else {
                self.events = self.reopen().await?;
                continue;
            };
            if event.id.is_some() {
                self.last_event_id.clone_from(&event.id);
            }
            self.retry = event.retry.or(self.retry);
            return Some(event);
        }
    }

    /// Reopens the stream: `Some(None)` on a failure that may pass, `None` on a permanent one.
    async fn reopen(&mut self) -> Option<Option<BoxedSseResponse>> {
        match self.retry.take() {
            // Some servers close the stream after each event on purpose.
            Some(retry) if self.last_event_id.is_some() => {
                sleep(Duration::from_millis(retry).max(MIN_RETRY)).await;
            }
            _ => self.backoff.wait_before_retry().await,
        }
        match (self.open)(self.last_event_id.clone()).await {
            Ok(events) => {
                if self.last_event_id.is_none() {
                    self.notifications.notify_possible_change();
                }
                Some(Some(events))
            }
            Err(error) if is_permanent(&error) => None,
            Err(_) => Some(None),
        }
    }
}

/// Converts a permanent error into one that rmcp does not retry.
pub(super) fn as_permanent_error(
    error: StreamableHttpError<reqwest::Error>,
) -> StreamableHttpError<reqwest::Error> {
    if is_permanent(&error) { StreamableHttpError::ServerDoesNotSupportSse } else { error }
}

/// Whether the server would repeat the error.
fn is_permanent(error: &StreamableHttpError<reqwest::Error>) -> bool {
    match error {
        // A server error, or too many requests.
        StreamableHttpError::HttpStatus(said) => said.status == NOT_IMPLEMENTED,
        StreamableHttpError::Client(error) => error.status().is_some(),
        StreamableHttpError::Sse(_) | StreamableHttpError::Io(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use futures_util::FutureExt as _;
    use rmcp::transport::streamable_http_client::HttpStatusError;
    use tokio::time::Instant;

    use super::*;

    /// The streams that are opened, in order.
    type Streams = VecDeque<Result<Vec<Sse>>>;

    /// Returns the event id and the time of each opening, and whether the tools are listed again.
    async fn opened(streams: Streams) -> (Vec<(Option<String>, u64)>, bool) {
        let (begun, notifications) = (Instant::now(), Arc::new(NotificationHandler::default()));
        notifications.expect_changes();
        let streams = Arc::new(Mutex::new(streams));
        let opened = Arc::<Mutex<Vec<_>>>::default();
        let noted = Arc::clone(&opened);
        let open = move |last| -> BoxFuture<'static, _> {
            let after = u64::try_from(begun.elapsed().as_millis()).unwrap();
            noted.lock().unwrap().push((last, after));
            let next = streams.lock().unwrap().pop_front();
            let next = next.unwrap_or(Err(StreamableHttpError::ServerDoesNotSupportSse));
            let next = next.map(|events| stream::iter(events.into_iter().map(Ok)).boxed());
            Box::pin(async { next })
        };
        if let Ok(events) = reconnecting_stream(open, Arc::clone(&notifications)).await {
            events.for_each(|_| async {}).await;
        }
        let looks = notifications.wait_for_change().now_or_never().is_some();
        let opened = opened.lock().unwrap().clone();
        (opened, looks)
    }

    fn out_of_order() -> Result<Vec<Sse>> {
        Err(HttpStatusError::new(503, None).into())
    }

    // MC2
    #[tokio::test(start_paused = true)]
    async fn reconnects_with_backoff_until_a_permanent_error() {
        let streams = [out_of_order(), Ok(Vec::new()), out_of_order(), Ok(Vec::new())];
        let at = [0, 1000, 3000, 7000, 15_000].map(|at| (None, at)).to_vec();
        assert_eq!(opened(streams.into()).await, (at, true));
        assert_eq!(opened(VecDeque::new()).await, (vec![(None, 0)], false));
    }

    #[tokio::test(start_paused = true)]
    async fn resumes_after_the_last_event_id_with_the_servers_delay() {
        let event = |id: &str, retry| {
            Ok(vec![Sse { id: Some(id.to_owned()), retry: Some(retry), ..Sse::default() }])
        };
        // fault 10: but not without any delay.
        let streams = [event("7", 200), event("8", 0), Ok(Vec::new())];
        let last = |id: &str| Some(id.to_owned());
        let at = vec![(None, 0), (last("7"), 200), (last("8"), 300), (last("8"), 1300)];
        assert_eq!(opened(streams.into()).await, (at, false));
    }
}
