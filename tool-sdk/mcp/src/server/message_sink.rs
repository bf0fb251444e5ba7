//! Where messages to a client go: over stdio to its one output, over HTTP to the event stream of a
//! request or of the session.

use std::sync::Arc;

use rmcp::model::{ServerJsonRpcMessage, ServerNotification};

use super::http::EventStream;
use super::stdio::LineSender;

/// The receiver of messages to a client. Cheap to clone.
#[derive(Clone)]
pub(super) enum MessageSink {
    Lines(LineSender),
    Events(Arc<EventStream>),
}

/// The client is gone, or the stream has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientDisconnected;

impl MessageSink {
    /// Sends one message, which is JSON in one line. Waits while the client reads slowly.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), ClientDisconnected> {
        match self {
            Self::Lines(lines) => lines.send(message).await,
            Self::Events(events) => events.send(&message).await,
        }
    }

    pub(super) async fn send_message(
        &self,
        message: &ServerJsonRpcMessage,
    ) -> Result<(), ClientDisconnected> {
        // Protocol types have string keys only, so they always serialize.
        self.send(serde_json::to_vec(message).map_err(|_| ClientDisconnected)?).await
    }

    /// Sends a notification. Over stdio it is a write of its own: clients that read the last progress
    /// of a call together with its response lose it.
    pub(super) async fn notify(
        &self,
        notification: ServerNotification,
    ) -> Result<(), ClientDisconnected> {
        let notification = ServerJsonRpcMessage::notification(notification);
        self.send_alone(serde_json::to_vec(&notification).map_err(|_| ClientDisconnected)?).await
    }

    /// Sends one message, over stdio in a write of its own.
    pub(super) async fn send_alone(&self, message: Vec<u8>) -> Result<(), ClientDisconnected> {
        match self {
            Self::Lines(lines) => lines.send_alone(message).await,
            Self::Events(events) => events.send(&message).await,
        }
    }
}
