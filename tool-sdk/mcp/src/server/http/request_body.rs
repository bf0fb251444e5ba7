//! Reads the body of a request, within limits of size and time.

use std::pin::{Pin, pin};
use std::time::Duration;

use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use tokio::time::timeout;

use super::responses::{HttpResponse, bad_request, text_response};

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The maximum size of a body.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// How long a client may take to send it.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a body that is too long is read, and for how long, before it is refused.
const MAX_DRAINED_BYTES: usize = 8 * MAX_BODY_BYTES;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the whole body.
pub(super) async fn read_body<B>(body: B) -> Result<Bytes, HttpResponse>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let mut body = pin!(body);
    let read = {
        let mut reading = pin!(collect_body(Limited::new(body.as_mut(), MAX_BODY_BYTES)));
        // Most bodies arrive with their head, and need no timer.
        match reading.as_mut().now_or_never() {
            Some(read) => read,
            None => timeout(BODY_TIMEOUT, reading).await.map_err(|_| {
                let words = "the message did not arrive in time";
                text_response(StatusCode::REQUEST_TIMEOUT, words)
            })?,
        }
    };
    match read {
        Ok(body) => Ok(body),
        Err(error) if error.is::<LengthLimitError>() => {
            // A client that still writes when the connection ends may never read the response.
            let _ = timeout(DRAIN_TIMEOUT, drain_body(body.as_mut())).await;
            let words = "the message is longer than 1 MiB";
            Err(text_response(StatusCode::PAYLOAD_TOO_LARGE, words))
        }
        Err(_) => Err(bad_request("the message is incomplete")),
    }
}

/// Collects a body, which mostly arrives in one piece.
async fn collect_body<B>(mut body: Limited<Pin<&mut B>>) -> Result<Bytes, BoxError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if first.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// Reads on and discards the data.
async fn drain_body<B: Body<Data = Bytes>>(mut body: Pin<&mut B>) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MAX_DRAINED_BYTES {
            return;
        }
    }
}
