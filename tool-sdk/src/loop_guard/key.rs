//! Hashes the arguments of a call, so that equal calls have equal keys.
//!
//! The order of an object's members and the blanks between tokens do not count. Text that is not
//! JSON is hashed as it is.
//!
//! Two different calls may share a key by chance, so nothing is allowed because of one.

use std::hash::{DefaultHasher, Hash as _, Hasher};

use serde_json::Value;

/// Returns the key of a call of `tool` with `arguments`.
pub(super) fn call_key(tool: &str, arguments: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    tool.hash(&mut hasher);
    hash_json(arguments, &mut hasher);
    hasher.finish()
}

/// Returns the key of a result: its text, and the facts that the text does not say.
pub(super) fn result_key(result: Result<&str, &str>, facts: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (result, facts).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn hash_json(text: &str, hasher: &mut impl Hasher) {
    match serde_json::from_str(text) {
        Ok(value) => hash_value(&value, hasher),
        Err(_) => text.hash(hasher),
    }
}

fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(value) => (1_u8, value).hash(hasher),
        Value::Number(number) => (2_u8, number).hash(hasher),
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(items) => {
            (4_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::Object(members) => {
            (5_u8, members.len()).hash(hasher);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in members {
                name.hash(hasher);
                hash_value(value, hasher);
            }
        }
    }
}
