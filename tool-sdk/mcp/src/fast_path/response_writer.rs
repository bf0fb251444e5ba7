//! Serializes responses directly to bytes, without intermediate JSON values.

use serde::Serialize;
use serde_json::{Value, json};
use tool_sdk_core::{Definition, Outcome, Output, ToolError, provider};

use crate::listing::ProtocolEra;
use crate::result::{ContentSupport, has_block_metadata, to_call_result};
use crate::ui::UiSupport;

/// An answer with a result that is JSON already.
pub(super) fn write_result(out: &mut Vec<u8>, id: &str, result: &str) {
    begin_response(out, id);
    out.extend_from_slice(result.as_bytes());
    end_response(out);
}

/// The answer to a call. The bytes are those that rmcp would write.
pub(super) fn write_outcome(
    out: &mut Vec<u8>,
    id: &str,
    outcome: Outcome,
    definition: &Definition,
    (ui, blocks): (UiSupport, ContentSupport),
) {
    let is_bare = ui == UiSupport::TextOnly || definition.display.ui.is_none();
    begin_response(out, id);
    match &outcome.result {
        Err(error) if error.output().is_none() => write_failure(out, error),
        Ok(output) if is_bare && is_plain_result(output, &outcome, definition) => {
            write_plain(out, output)
        }
        _ => {
            let mut result = to_call_result(outcome, definition, (ProtocolEra::Legacy, blocks), ui);
            // Peers of this era do not know it.
            result.result_type = None;
            write_value(out, &result);
        }
    }
    end_response(out);
}

/// A whole message.
pub(super) fn message(out: &mut Vec<u8>, write_message: &impl Serialize) {
    write_value(out, write_message);
    out.push(b'\n');
}

/// A message of our own.
pub(super) fn write_notification(out: &mut Vec<u8>, method: &str, params: &Value) {
    message(out, &json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

fn begin_response(out: &mut Vec<u8>, id: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
}

fn end_response(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
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

/// Whether the result is a text, or an object that goes with its text as it stands there.
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
