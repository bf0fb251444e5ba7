//! The JSON documents that describe the outcome of a call, for `--json` and `batch`.

use std::path::PathBuf;

use serde_json::{Value, json};
use tool_sdk_core::{Attachment, AttachmentData, CallId, Outcome, Output, ToolError};

use super::exit;

/// Returns the document of a finished call, and its exit code.
pub(super) fn outcome_document(tool: &str, outcome: &Outcome) -> (Value, u8) {
    match &outcome.result {
        Ok(output) => (success_document(tool, outcome, output), exit::output_exit_code(output)),
        Err(error) => (failure_document(tool, &outcome.call, error), exit::exit_code(error.kind())),
    }
}

/// Returns the document of a call that failed or was never made.
pub(super) fn failure_document(tool: &str, call: &CallId, error: &ToolError) -> Value {
    let mut document =
        json!({ "ok": false, "tool": tool, "call": call, "error": exit::error_json(error) });
    if let Some(output) = error.output() {
        add_present(&mut document, extra_members(output));
    }
    document
}

fn success_document(tool: &str, outcome: &Outcome, output: &Output) -> Value {
    let mut document = json!({
        "ok": true,
        "tool": tool,
        "call": outcome.call,
        "output": output.as_text(),
    });
    add_present(&mut document, extra_members(output));
    add_present(
        &mut document,
        [
            ("truncated", outcome.truncation().map(|cut| json!(cut))),
            (
                "notes",
                Some(outcome.notes()).filter(|notes| !notes.is_empty()).map(|notes| json!(notes)),
            ),
        ],
    );
    document
}

/// Returns the members for output other than text.
fn extra_members(output: &Output) -> [(&'static str, Option<Value>); 5] {
    let attachments: Vec<Value> = output.attachments().iter().map(attachment_json).collect();
    [
        ("structured", output.to_structured()),
        ("title", output.title_text().map(Value::from)),
        ("metadata", output.metadata_map().cloned().map(Value::from)),
        ("attachments", Some(attachments).filter(|all| !all.is_empty()).map(Value::from)),
        ("display", output.display_data().cloned()),
    ]
}

/// Adds the members that have a value.
fn add_present<const N: usize>(document: &mut Value, members: [(&'static str, Option<Value>); N]) {
    for (key, value) in members {
        if let Some(value) = value {
            document[key] = value;
        }
    }
}

/// Adds the paths under which attachments were saved.
pub(super) fn add_saved_paths(document: &mut Value, paths: &[Option<PathBuf>]) {
    // An index would add the key where it is missing.
    let attachments = document.get_mut("attachments").and_then(Value::as_array_mut);
    let entries = attachments.into_iter().flatten();
    for (entry, path) in entries.zip(paths) {
        if let Some(path) = path {
            entry["path"] = path.to_string_lossy().into();
        }
    }
}

/// Describes an attachment, without its bytes.
fn attachment_json(attachment: &Attachment) -> Value {
    let mut entry = json!({ "mime": attachment.mime, "name": attachment.name });
    if let Some(origin) = &attachment.origin {
        entry["origin"] = origin.as_str().into();
    }
    match &attachment.data {
        AttachmentData::Bytes(bytes) => entry["bytes"] = bytes.len().into(),
        AttachmentData::Uri(uri) => entry["uri"] = uri.as_str().into(),
    }
    entry
}
