//! Responses to requests, as JSON text.
//!
//! The result of a plain call and the cached tool list are written without JSON values in between.

use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerResult};
use serde::Serialize;
use serde_json::{Value, json};
use tool_sdk_core::{Definition, Outcome, Output, ToolError, provider};

use super::listing::ProtocolEra;
use super::message::MessageError;
use super::result::{ContentSupport, has_block_metadata, to_call_result};
use super::ui::UiSupport;

/// The result of a request as JSON text.
pub(super) enum ResultText {
    Owned(Vec<u8>),
    Shared(Arc<str>),
}

impl ResultText {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Owned(text) => text,
            Self::Shared(text) => text.as_bytes(),
        }
    }
}

/// What the handler of a request returns.
pub(super) type HandlerResult = Result<ResultText, ErrorData>;

/// The response to a request.
#[derive(Debug)]
pub(super) struct JsonRpcResponse {
    /// The JSON text, in one line.
    pub(super) text: Vec<u8>,
    /// The code, if the response is an error.
    pub(super) error: Option<ErrorCode>,
}

impl JsonRpcResponse {
    pub(super) fn new(id: &RequestId, result: HandlerResult) -> Self {
        match result {
            Ok(result) => {
                let result = result.as_bytes();
                let mut text = Vec::with_capacity(result.len() + 64);
                text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
                write_value(&mut text, id);
                text.extend_from_slice(br#","result":"#);
                text.extend_from_slice(result);
                text.push(b'}');
                Self { text, error: None }
            }
            Err(error) => Self::error(Some(id), &error),
        }
    }

    /// Returns an error response. It has no id if that could not be read.
    pub(super) fn error(id: Option<&RequestId>, error: &ErrorData) -> Self {
        let response = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        Self { text: response.to_string().into_bytes(), error: Some(error.code) }
    }
}

impl From<MessageError> for JsonRpcResponse {
    fn from(refused: MessageError) -> Self {
        Self::error(refused.id.as_ref(), &refused.error)
    }
}

/// Writes a result of the protocol. `server_info` goes to the metadata for modern clients, which
/// never see the response of `initialize`.
pub(super) fn result_text(
    mut result: ServerResult,
    era: ProtocolEra,
    server_info: impl FnOnce() -> Value,
) -> ResultText {
    /// The key of the server info in `_meta`.
    const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
    let mut text = Vec::new();
    match era {
        ProtocolEra::Legacy => {
            result.strip_result_type_for_legacy_peer();
            result.strip_non_object_output_for_legacy_peer();
            write_value(&mut text, &result);
        }
        ProtocolEra::Modern => {
            result.fill_missing_cache_hints();
            let mut result = json!(result);
            // The result of `server/discover` has it with everything that the server says about itself.
            let info = &mut result["_meta"][SERVER_INFO_KEY];
            if info.is_null() {
                *info = server_info();
            }
            write_value(&mut text, &result);
        }
    }
    ResultText::Owned(text)
}

/// Writes the outcome of a legacy client's call; the bytes equal those of [`result_text`].
pub(super) fn outcome_text(
    outcome: Outcome,
    definition: &Definition,
    (ui, blocks): (UiSupport, ContentSupport),
) -> ResultText {
    let is_bare = ui == UiSupport::TextOnly || definition.display.ui.is_none();
    let mut text = Vec::with_capacity(256);
    match &outcome.result {
        Err(error) if error.output().is_none() => write_failure(&mut text, error),
        Ok(output) if is_bare && is_plain_result(output, &outcome, definition) => {
            write_plain(&mut text, output)
        }
        _ => {
            let mut result = to_call_result(outcome, definition, (ProtocolEra::Legacy, blocks), ui);
            // Legacy clients do not know it.
            result.result_type = None;
            write_value(&mut text, &result);
        }
    }
    ResultText::Owned(text)
}

fn write_value(out: &mut Vec<u8>, value: &impl Serialize) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

fn write_failure(out: &mut Vec<u8>, error: &ToolError) {
    write_text(out, &error.to_string());
    out.extend_from_slice(br#","isError":true}"#);
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(br#"{"content":[{"type":"text","text":"#);
    write_value(out, &text);
    out.extend_from_slice(b"}]");
}

/// Returns true if the result is a text, or an object that is its own text.
fn is_plain_result(output: &Output, outcome: &Outcome, definition: &Definition) -> bool {
    if !output.attachments().is_empty() || has_block_metadata(output, &definition.source) {
        return false;
    }
    match output.is_json() {
        true => {
            let is_object = output.as_text().starts_with('{');
            is_object && outcome.truncation().is_none() && !provider::wraps_result(definition)
        }
        false => definition.output.is_none() && output.to_structured().is_none(),
    }
}

fn write_plain(out: &mut Vec<u8>, output: &Output) {
    write_text(out, output.as_text());
    if output.is_json() {
        out.extend_from_slice(br#","structuredContent":"#);
        out.extend_from_slice(output.as_text().as_bytes());
    }
    out.extend_from_slice(br#","isError":false}"#);
}
