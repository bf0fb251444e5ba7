//! The values that `set_state` keeps for the rules of a session.
//!
//! **Invariant:** number and size of the values are bounded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tool_sdk::ToolError;

/// How many values there may be.
const MAX_VALUES: usize = 256;

/// How long a value may be as JSON, in bytes.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// The values that rules keep while a session lasts; clones share them.
///
/// At most 256 values, each of at most 16 KiB as JSON.
#[derive(Clone, Debug, Default)]
pub struct ReactionState(Arc<Mutex<BTreeMap<String, Value>>>);

impl ReactionState {
    /// Returns a value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        self.values().get(key).cloned()
    }

    /// Sets a value; `null` removes it. Returns the value before.
    ///
    /// # Errors
    ///
    /// Fails with kind `invalid_args` when the value is too large or there are too many values.
    pub fn set(&self, key: &str, value: Value) -> Result<Option<Value>, ToolError> {
        let mut values = self.values();
        if value.is_null() {
            return Ok(values.remove(key));
        }
        let length = value.to_string().len();
        if length > MAX_VALUE_BYTES {
            return Err(ToolError::invalid_args(format_args!(
                "the value has {length} bytes as JSON, but may have {MAX_VALUE_BYTES}"
            )));
        }
        if values.len() >= MAX_VALUES && !values.contains_key(key) {
            return Err(ToolError::invalid_args(format_args!(
                "there are {MAX_VALUES} values already"
            ))
            .hint("remove one by setting it to null"));
        }
        Ok(values.insert(key.to_owned(), value))
    }

    /// Returns all values as an object.
    pub(super) fn to_value(&self) -> Value {
        Value::Object(
            self.values().iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        )
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded_in_number_and_size() {
        let state = ReactionState::default();
        for number in 0..MAX_VALUES {
            state.set(&format!("k{number}"), number.into()).unwrap();
        }
        assert!(state.set("more", 1.into()).is_err());
        assert!(state.set("k0", "x".repeat(MAX_VALUE_BYTES).into()).is_err());
        assert_eq!(state.set("k0", Value::Null).unwrap(), Some(0.into()));
        assert_eq!(state.set("more", 1.into()).unwrap(), None);
        assert_eq!((state.get("k0"), state.get("more")), (None, Some(1.into())));
    }
}
