//! Depth limit: replaces tools in a list that are nested too deeply to be parsed.
//!
//! One such tool would make the whole message unreadable. It is replaced by a placeholder with its
//! name, so that the other tools are usable and a warning can name it.
//!
//! **Invariant:** nothing but the name of a tool that is too deep is kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::json_rpc::is_too_deep;

/// Marks a placeholder.
const TOO_DEEP_KEY: &str = "io.tool-sdk/tooDeep";

/// The members of an object, as raw JSON.
type RawMembers<'a> = BTreeMap<Cow<'a, str>, Cow<'a, RawValue>>;

#[derive(Deserialize)]
struct NamedTool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Returns the message with placeholders for tools that are too deep; `None` if it is not a list of
/// tools or has no such tool.
pub(super) fn replace_deep_tools(message: &[u8]) -> Option<Vec<u8>> {
    let mut message: RawMembers<'_> = serde_json::from_slice(message).ok()?;
    let result = message.get("result")?.clone();
    let mut result: RawMembers<'_> = serde_json::from_str(result.get()).ok()?;
    let tools = result.get("tools")?.clone();
    let mut tools: Vec<Cow<'_, RawValue>> = serde_json::from_str(tools.get()).ok()?;
    let mut has_deep = false;
    for tool in tools.iter_mut().filter(|tool| is_too_deep(tool.get())) {
        let name = serde_json::from_str::<NamedTool<'_>>(tool.get()).map(|it| it.name);
        let instead = json!({ "name": name.unwrap_or_default(), TOO_DEEP_KEY: true });
        *tool = Cow::Owned(to_raw_value(&instead).ok()?);
        has_deep = true;
    }
    if !has_deep {
        return None;
    }
    let tools = to_raw_value(&tools).ok()?;
    result.insert("tools".into(), Cow::Owned(tools));
    let result = to_raw_value(&result).ok()?;
    message.insert("result".into(), Cow::Owned(result));
    serde_json::to_vec(&message).ok()
}

/// Whether a tool is a placeholder.
pub(super) fn is_placeholder(tool: &Value) -> bool {
    tool.get(TOO_DEEP_KEY).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &[&str]) -> String {
        let tools = tools.join(",");
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"nextCursor":"a","tools":[{tools}]}}}}"#)
    }

    #[test]
    fn replaces_only_tools_that_are_too_deep() {
        let deep =
            format!(r#"{{"inputSchema":{}1{},"name":"deep"}}"#, "[".repeat(300), "]".repeat(300));
        let flat = r#"{"name":"flat","inputSchema":{"type":"object"}}"#;
        let rest = replace_deep_tools(list(&[&deep, flat]).as_bytes()).unwrap();
        let rest: Value = serde_json::from_slice(&rest).unwrap();
        let tools = rest["result"]["tools"].as_array().unwrap();
        assert_eq!((tools.len(), &tools[0]["name"]), (2, &json!("deep")));
        assert_eq!([&tools[0], &tools[1]].map(is_placeholder), [true, false]);
        assert_eq!((&rest["id"], &rest["result"]["nextCursor"]), (&json!(1), &json!("a")));
        assert_eq!(tools[1]["inputSchema"]["type"], "object");

        assert!(replace_deep_tools(list(&[flat]).as_bytes()).is_none());
        for other in [r#"{"id":1,"result":[]}"#, r#"{"id":1}"#, "[]", "{"] {
            assert!(replace_deep_tools(other.as_bytes()).is_none(), "{other}");
        }
    }
}
