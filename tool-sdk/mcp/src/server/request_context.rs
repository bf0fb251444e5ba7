//! What the handlers know about the request and its client.

use std::sync::Arc;

use rmcp::model::{ClientCapabilities, ProtocolVersion, RequestId, RequestMetaObject};
use tool_sdk_core::internal::LazyCancelToken;

use super::input::InputCapabilities;
use super::listing::ProtocolEra;
use super::message_sink::MessageSink;
use super::result::ContentSupport;
use super::ui::UiSupport;

/// A request of a client.
pub(super) struct RequestContext {
    pub(super) id: RequestId,
    pub(super) meta: RequestMetaObject,
    pub(super) version: ProtocolVersion,
    pub(super) client: Arc<ClientProfile>,
    /// Where messages that belong to the request go.
    pub(super) sink: MessageSink,
    pub(super) cancel: LazyCancelToken,
}

impl RequestContext {
    pub(super) fn era(&self) -> ProtocolEra {
        ProtocolEra::from_version(&self.version)
    }

    /// Returns which content blocks the client supports.
    pub(super) fn content_support(&self) -> ContentSupport {
        ContentSupport::from_version(&self.version)
    }
}

/// What a client says about itself.
#[derive(Debug, Default)]
pub(super) struct ClientProfile {
    pub(super) name: String,
    /// The kinds of questions that it can answer.
    pub(super) input: InputCapabilities,
    /// Which UI pages it shows.
    pub(super) ui: UiSupport,
    /// Whether it supports the tasks extension, which modern clients declare.
    pub(super) tasks: bool,
}

impl ClientProfile {
    /// `user_agent` is the header of an HTTP request, by which some clients are recognized.
    pub(super) fn new(
        name: String,
        capabilities: Option<&ClientCapabilities>,
        user_agent: Option<&str>,
    ) -> Self {
        let ui = match UiSupport::detect(&name, capabilities) {
            UiSupport::ChatGpt => UiSupport::ChatGpt,
            UiSupport::TextOnly | UiSupport::McpApps => {
                UiSupport::detect(user_agent.unwrap_or_default(), capabilities)
            }
        };
        let tasks = capabilities.is_some_and(ClientCapabilities::supports_tasks);
        Self { name, input: InputCapabilities::from_client(capabilities), ui, tasks }
    }
}

/// Cancels a request or a call unless it is disarmed before.
pub(super) struct CancelOnDrop(Option<LazyCancelToken>);

impl CancelOnDrop {
    pub(super) fn new(cancel: LazyCancelToken) -> Self {
        Self(Some(cancel))
    }

    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.token().cancel();
        }
    }
}
