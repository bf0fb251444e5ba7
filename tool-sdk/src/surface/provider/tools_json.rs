//! Whole definitions, from which the tools can be loaded again.

use serde_json::{Map, Value};

use crate::tool::Definition;

/// Everything that a definition says, except where it is written: that would change with
/// every line above it.
pub(super) fn encode_tool(definition: &Definition) -> Value {
    let mut tool = match serde_json::to_value(definition) {
        Ok(Value::Object(tool)) => tool,
        // A definition is plain data, which always can be written.
        _ => Map::new(),
    };
    tool.shift_remove("place");
    for part in ["display", "flags"] {
        if tool.get(part).and_then(Value::as_object).is_some_and(Map::is_empty) {
            tool.shift_remove(part);
        }
    }
    Value::Object(tool)
}
