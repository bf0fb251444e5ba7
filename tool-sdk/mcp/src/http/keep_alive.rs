//! Sends SSE keep-alive comments every 15 s, because many proxies close a response that is idle for
//! a minute.
//!
//! rmcp sends nothing before the first message of a stateless request. Here a response that takes
//! longer is turned into an event stream that begins with comments.
//!
//! **Invariant:** a response that arrives in time is unchanged.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt as _};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::{Bytes, Frame};
use tokio::time::timeout;

use super::responses::{HttpResponse, event_stream_response, is_event_stream};

/// How long nothing is said. rmcp breaks the silence of its streams as often.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

const KEEP_ALIVE_COMMENT: &[u8] = b":\n\n";

/// A response that is not ready yet. The lock makes the future `Sync`, which a body must be; it is
/// never contended.
struct PendingResponse(Mutex<Pin<Box<dyn Future<Output = HttpResponse> + Send>>>);

impl Future for PendingResponse {
    type Output = HttpResponse;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<HttpResponse> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(cx)
    }
}

/// The answer, which begins at the latest when nothing came for a while.
pub(super) async fn with_keep_alive(
    coming: impl Future<Output = HttpResponse> + Send + 'static,
) -> HttpResponse {
    let mut coming = PendingResponse(Mutex::new(Box::pin(coming)));
    match timeout(KEEP_ALIVE_INTERVAL, &mut coming).await {
        Ok(answer) => answer,
        Err(_) => event_stream_response(BodyExt::boxed(StreamBody::new(keep_alive_stream(coming)))),
    }
}

/// Comments until there is an answer, and then that.
fn keep_alive_stream(
    coming: PendingResponse,
) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + Sync {
    let first = Bytes::from_static(KEEP_ALIVE_COMMENT);
    let comments = stream::once(async move { Ok(Frame::data(first)) });
    let rest = stream::unfold(Some(coming), |coming| async move {
        let mut coming = coming?;
        Some(match timeout(KEEP_ALIVE_INTERVAL, &mut coming).await {
            Ok(answer) if is_event_stream(&answer) => {
                (BodyStream::new(answer.into_body()).left_stream(), None)
            }
            Ok(answer) => (stream::iter([Ok(to_event(answer).await)]).right_stream(), None),
            Err(_) => {
                let comment = Frame::data(Bytes::from_static(KEEP_ALIVE_COMMENT));
                (stream::iter([Ok(comment)]).right_stream(), Some(coming))
            }
        })
    });
    comments.chain(rest.flatten())
}

/// A message that was to come alone, as an event. It is written in one line.
async fn to_event(answer: HttpResponse) -> Frame<Bytes> {
    let Ok(body) = answer.into_body().collect().await;
    let message = body.to_bytes();
    Frame::data([b"data: ", &*message, b"\n\n"].concat().into())
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;
    use crate::http::responses::{JSON, full_response};

    fn message() -> HttpResponse {
        full_response(StatusCode::OK, Bytes::from_static(b"{}"), JSON)
    }

    async fn read(answer: HttpResponse) -> (bool, String) {
        let is_stream = is_event_stream(&answer);
        let Ok(body) = answer.into_body().collect().await;
        (is_stream, String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    // F20, by a clock that does not go by itself.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_long_in_coming_begins_before() {
        let after = |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            message()
        };
        assert_eq!(read(with_keep_alive(after(14)).await).await, (false, "{}".to_owned()));
        let late = (true, ":\n\n:\n\n:\n\ndata: {}\n\n".to_owned());
        assert_eq!(read(with_keep_alive(after(50)).await).await, late);
        let stream = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            event_stream_response(message().into_body())
        };
        assert_eq!(read(with_keep_alive(stream).await).await, (true, ":\n\n{}".to_owned()));
    }
}
