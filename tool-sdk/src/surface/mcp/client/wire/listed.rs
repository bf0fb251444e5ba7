//! The names in a list of tools as it came over HTTP.
//!
//! The library leaves out a tool whose arguments cannot stand in the head of a request as it says,
//! and tells nobody. What came is noted here, so that what is missing can be told.
//!
//! **Invariant:** nothing is changed on its way.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::ears::Ears;
use super::events::Attentive;

type Headers = HashMap<HeaderName, HeaderValue>;
type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

/// A client that notes which tools a list has.
#[derive(Clone)]
pub(super) struct Noting(pub(super) Attentive);

impl StreamableHttpClient for Noting {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse> {
        let is_list = is_list(&message);
        let posted = self.0.post_message(uri, message, session, token, headers).await?;
        Ok(noted(&self.0.ears, posted, is_list))
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
        let is_list = is_list(&message);
        let posted = self
            .0
            .post_message_with_max_sse_event_size(uri, message, session, token, headers, longest);
        Ok(noted(&self.0.ears, posted.await?, is_list))
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
        self.0.get_stream_with_max_sse_event_size(uri, session, last, token, headers, longest).await
    }
}

fn is_list(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::ListToolsRequest(_))
}

/// The same answer, of which the names are noted.
fn noted(
    ears: &Arc<Ears>,
    posted: StreamableHttpPostResponse,
    is_list: bool,
) -> StreamableHttpPostResponse {
    match posted {
        StreamableHttpPostResponse::Json(answer, session) if is_list => {
            ears.heard_list(&answer);
            StreamableHttpPostResponse::Json(answer, session)
        }
        StreamableHttpPostResponse::Sse(events, session) if is_list => {
            let ears = Arc::clone(ears);
            let events = events.inspect(move |event| {
                let data = event.as_ref().ok().and_then(|event| event.data.as_deref());
                if let Some(Ok(message)) = data.map(serde_json::from_str) {
                    ears.heard_list(&message);
                }
            });
            StreamableHttpPostResponse::Sse(events.boxed(), session)
        }
        other => other,
    }
}
