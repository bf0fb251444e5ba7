//! Keeps what servers of 2025-11-25 say about running a tool as a task, which rmcp does not read: it goes
//! to a place that rmcp passes on.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::{Map, Value, json};
use tool_sdk_core::TaskSupport;

/// The key of a tool's `_meta` that holds its task support.
const TASK_SUPPORT_KEY: &str = "io.tool-sdk/taskSupport";

/// Returns the message with the task support of its tools in their metadata, if it is a list of tools
/// that say something about it.
pub(super) fn keep_task_support(message: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(message, b"\"taskSupport\"").is_none() {
        return Cow::Borrowed(message);
    }
    move_task_support(message).map_or(Cow::Borrowed(message), Cow::Owned)
}

fn move_task_support(message: &[u8]) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(message).ok()?;
    for tool in message.pointer_mut("/result/tools")?.as_array_mut()? {
        let Some(support) = tool.pointer("/execution/taskSupport").cloned() else { continue };
        let Some(tool) = tool.as_object_mut() else { continue };
        let meta = tool.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(TASK_SUPPORT_KEY.to_owned(), support);
        }
    }
    serde_json::to_vec(&message).ok()
}

/// Takes the task support out of a tool's metadata.
pub(super) fn take_task_support(meta: &mut Option<Map<String, Value>>) -> TaskSupport {
    let support = meta.as_mut().and_then(|meta| meta.shift_remove(TASK_SUPPORT_KEY));
    if meta.as_ref().is_some_and(Map::is_empty) {
        *meta = None;
    }
    support.and_then(|support| serde_json::from_value(support).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_task_support_of_a_list_of_tools() {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
            { "name": "a", "execution": { "taskSupport": "required" } },
            { "name": "b", "execution": { "taskSupport": "sometimes" }, "_meta": { "k": 1 } },
            { "name": "c", "execution": { "taskSupport": "optional" }, "_meta": "none" },
            { "name": "d" },
        ] } });
        let kept = keep_task_support(list.to_string().as_bytes()).into_owned();
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        let support = |at: usize| {
            let tool = kept["result"]["tools"][at].clone();
            let mut meta = tool.get("_meta").and_then(Value::as_object).cloned();
            (take_task_support(&mut meta), meta)
        };
        assert_eq!(support(0), (TaskSupport::Required, None));
        assert_eq!(support(1).0, TaskSupport::Forbidden);
        assert_eq!(support(1).1.unwrap()["k"], 1);
        assert_eq!(support(2), (TaskSupport::Forbidden, None));
        assert_eq!(support(3), (TaskSupport::Forbidden, None));
        for other in
            [r#"{"result":{"tools":5},"k":"taskSupport"}"#, r#"["taskSupport"]"#, "\"taskSupport\""]
        {
            assert!(matches!(keep_task_support(other.as_bytes()), Cow::Borrowed(_)), "{other}");
        }
    }
}
