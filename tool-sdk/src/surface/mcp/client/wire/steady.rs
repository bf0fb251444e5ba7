//! The stream on which an older server over HTTP says what belongs to no answer.
//!
//! Servers and whatever stands before them end it as they like. It is opened again for as long as
//! somebody reads it; what changed meanwhile nobody told, so the tools are looked at then, unless
//! the server numbers what it says and so leaves nothing out.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpError};
use sse_stream::Sse;
use tokio::time::sleep;

use super::ears::Ears;
use super::pause::Pause;

type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

/// Opens the stream from behind the event of this name on.
type Open = Box<dyn Fn(Option<String>) -> BoxFuture<'static, Result<BoxedSseResponse>> + Send>;

const NOT_IMPLEMENTED: u16 = 501;

/// The shortest wait that a server can ask for: one that ends each stream at once keeps nobody busy.
const LEAST: Duration = Duration::from_millis(100);

/// A stream that is opened again.
struct Steady {
    open: Open,
    ears: Arc<Ears>,
    events: Option<BoxedSseResponse>,
    /// The name of the last event that has one.
    last: Option<String>,
    /// When the server wants to be asked again, in milliseconds.
    retry: Option<u64>,
    pause: Pause,
}

/// The stream that `open` opens, without an end.
///
/// # Errors
///
/// Fails where the server has no such stream.
pub(super) async fn steady(
    open: impl Fn(Option<String>) -> BoxFuture<'static, Result<BoxedSseResponse>> + Send + 'static,
    ears: Arc<Ears>,
) -> Result<BoxedSseResponse> {
    let events = match open(None).await {
        Ok(events) => Some(events),
        Err(error) if is_final(&error) => return Err(error),
        Err(_) => None,
    };
    let (open, pause) = (Box::new(open), Pause::new());
    let steady = Steady { open, ears, events, last: None, retry: None, pause };
    let events = stream::unfold(steady, |mut steady| async move {
        let event = steady.next().await?;
        Some((Ok(event), steady))
    });
    Ok(events.boxed())
}

impl Steady {
    /// The next event; none once the server has no such stream any more.
    async fn next(&mut self) -> Option<Sse> {
        loop {
            let event: Option<std::result::Result<Sse, SseError>> = match &mut self.events {
                Some(events) => events.next().await,
                None => None,
            };
            let Some(Ok(event)) = event else {
                self.events = self.again().await?;
                continue;
            };
            if event.id.is_some() {
                self.last.clone_from(&event.id);
            }
            self.retry = event.retry.or(self.retry);
            return Some(event);
        }
    }

    /// Opens the stream once more; nothing where that fails, and nothing at all where it always
    /// will.
    async fn again(&mut self) -> Option<Option<BoxedSseResponse>> {
        match self.retry.take() {
            // Some end it after each event on purpose.
            Some(retry) if self.last.is_some() => {
                sleep(Duration::from_millis(retry).max(LEAST)).await;
            }
            _ => self.pause.wait().await,
        }
        match (self.open)(self.last.clone()).await {
            Ok(events) => {
                if self.last.is_none() {
                    self.ears.missed_news();
                }
                Some(Some(events))
            }
            Err(error) if is_final(&error) => None,
            Err(_) => Some(None),
        }
    }
}

/// The same error, which the library takes for the last one where it is.
pub(super) fn said_for_good(
    error: StreamableHttpError<reqwest::Error>,
) -> StreamableHttpError<reqwest::Error> {
    if is_final(&error) { StreamableHttpError::ServerDoesNotSupportSse } else { error }
}

/// Whether a server that says so will say it again.
fn is_final(error: &StreamableHttpError<reqwest::Error>) -> bool {
    match error {
        // One of the fives, or that there were too many.
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

    /// What is opened, one stream after the other.
    type Streams = VecDeque<Result<Vec<Sse>>>;

    /// From behind which events such a stream is opened, when, and whether the tools are looked
    /// at.
    async fn opened(streams: Streams) -> (Vec<(Option<String>, u64)>, bool) {
        let (begun, ears) = (Instant::now(), Arc::new(Ears::default()));
        ears.expect_news();
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
        if let Ok(events) = steady(open, Arc::clone(&ears)).await {
            events.for_each(|_| async {}).await;
        }
        let looks = ears.change().now_or_never().is_some();
        let opened = opened.lock().unwrap().clone();
        (opened, looks)
    }

    fn out_of_order() -> Result<Vec<Sse>> {
        Err(HttpStatusError::new(503, None).into())
    }

    // MC2
    #[tokio::test(start_paused = true)]
    async fn a_stream_is_opened_again_until_there_is_none_any_more() {
        let streams = [out_of_order(), Ok(Vec::new()), out_of_order(), Ok(Vec::new())];
        let at = [0, 1000, 3000, 7000, 15_000].map(|at| (None, at)).to_vec();
        assert_eq!(opened(streams.into()).await, (at, true));
        assert_eq!(opened(VecDeque::new()).await, (vec![(None, 0)], false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_numbers_its_events_is_asked_when_it_likes() {
        let event = |id: &str, retry| {
            Ok(vec![Sse { id: Some(id.to_owned()), retry: Some(retry), ..Sse::default() }])
        };
        // fault 10: but not all the time.
        let streams = [event("7", 200), event("8", 0), Ok(Vec::new())];
        let last = |id: &str| Some(id.to_owned());
        let at = vec![(None, 0), (last("7"), 200), (last("8"), 300), (last("8"), 1300)];
        assert_eq!(opened(streams.into()).await, (at, false));
    }
}
