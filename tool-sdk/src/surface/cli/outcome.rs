//! What became of one call, as JSON for programs.

use serde_json::{Value, json};

use super::exit;
use crate::call::{CallId, Outcome};
use crate::content::{Attachment, Data, Output};
use crate::error::ToolError;

/// A call that was run, or refused on the way, and its exit code.
pub(super) fn document(tool: &str, outcome: &Outcome) -> (Value, u8) {
    match &outcome.result {
        Ok(output) => (success(tool, outcome, output), 0),
        Err(error) => (failure(tool, &outcome.call, error), exit::code(error.kind())),
    }
}

/// A call that failed, or was never made.
pub(super) fn failure(tool: &str, call: &CallId, error: &ToolError) -> Value {
    json!({ "ok": false, "tool": tool, "call": call, "error": exit::report(error) })
}

fn success(tool: &str, outcome: &Outcome, output: &Output) -> Value {
    let mut document = json!({
        "ok": true,
        "tool": tool,
        "call": outcome.call,
        "output": output.as_text(),
    });
    let attachments: Vec<Value> = output.attachments().iter().map(attachment).collect();
    let beside = [
        ("structured", output.to_structured()),
        ("title", output.title_text().map(Value::from)),
        ("metadata", output.metadata_map().cloned().map(Value::from)),
        ("attachments", Some(attachments).filter(|all| !all.is_empty()).map(Value::from)),
        ("display", output.display_data().cloned()),
        ("truncated", outcome.truncated().map(|cut| json!(cut))),
        (
            "notes",
            Some(outcome.notes()).filter(|notes| !notes.is_empty()).map(|notes| json!(notes)),
        ),
    ];
    for (key, value) in beside {
        if let Some(value) = value {
            document[key] = value;
        }
    }
    document
}

/// An attachment without its bytes.
fn attachment(attachment: &Attachment) -> Value {
    let mut entry = json!({ "mime": attachment.mime, "name": attachment.name });
    match &attachment.data {
        Data::Bytes(bytes) => entry["bytes"] = bytes.len().into(),
        Data::Uri(uri) => entry["uri"] = uri.as_str().into(),
    }
    entry
}
