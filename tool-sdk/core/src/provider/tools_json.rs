//! Complete definitions, from which tools can be loaded again.

use serde_json::{Map, Value};

use crate::tool::Definition;

/// Encodes everything in a definition except its source location, which would change with every
/// edit above it.
pub(super) fn encode_tool(definition: &Definition) -> Value {
    let mut tool = match serde_json::to_value(definition) {
        Ok(Value::Object(tool)) => tool,
        // A definition is plain data and always serializes.
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
