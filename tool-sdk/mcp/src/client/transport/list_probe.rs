//! Records the tool names in a listing over HTTP.
//!
//! rmcp silently drops a tool whose arguments cannot be sent in HTTP headers as it asks. The names
//! are recorded from the raw response, so that a warning can name the dropped tools.
//!
//! **Invariant:** responses are not changed.

use std::sync::Arc;

use futures_util::StreamExt as _;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::streamable_http_client::StreamableHttpPostResponse;

use super::notifications::NotificationHandler;

/// Whether the message is `tools/list`.
pub(super) fn is_list_request(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::ListToolsRequest(_))
}

/// Records the names in the response to `tools/list`, and returns it.
pub(super) fn record_listed_names(
    notifications: &Arc<NotificationHandler>,
    posted: StreamableHttpPostResponse,
) -> StreamableHttpPostResponse {
    match posted {
        StreamableHttpPostResponse::Json(answer, session) => {
            notifications.record_listed_names(&answer);
            StreamableHttpPostResponse::Json(answer, session)
        }
        StreamableHttpPostResponse::Sse(events, session) => {
            let notifications = Arc::clone(notifications);
            let events = events.inspect(move |event| {
                let data = event.as_ref().ok().and_then(|event| event.data.as_deref());
                if let Some(Ok(message)) = data.map(serde_json::from_str) {
                    notifications.record_listed_names(&message);
                }
            });
            StreamableHttpPostResponse::Sse(events.boxed(), session)
        }
        other => other,
    }
}
