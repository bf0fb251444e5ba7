//! The names in a list of tools as it came over HTTP.
//!
//! The library leaves out a tool whose arguments cannot stand in the head of a request as it says,
//! and tells nobody. What came is noted here, so that what is missing can be told.
//!
//! **Invariant:** nothing is changed on its way.

use std::sync::Arc;

use futures_util::StreamExt as _;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::streamable_http_client::StreamableHttpPostResponse;

use super::ears::Ears;

/// Whether a list of tools is asked for.
pub(super) fn is_list(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::ListToolsRequest(_))
}

/// The same answer to who asked for a list, of which the names are noted.
pub(super) fn noted(
    ears: &Arc<Ears>,
    posted: StreamableHttpPostResponse,
) -> StreamableHttpPostResponse {
    match posted {
        StreamableHttpPostResponse::Json(answer, session) => {
            ears.heard_list(&answer);
            StreamableHttpPostResponse::Json(answer, session)
        }
        StreamableHttpPostResponse::Sse(events, session) => {
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
