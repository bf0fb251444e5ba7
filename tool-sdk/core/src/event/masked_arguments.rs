//! The arguments of a call in events, with sensitive values masked.
//!
//! The text is parsed as JSON on first access, because most subscribers do not read it. Arguments
//! with sensitive values are parsed and masked at once, so that no event ever contains them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::tool::ToolDisplay;

/// The arguments of a call with sensitive values masked; dereferences to a [`Value`].
///
/// Text that is not JSON becomes `null`.
#[derive(Clone)]
pub struct MaskedArguments {
    text: Arc<str>,
    value: OnceLock<Arc<Value>>,
}

impl MaskedArguments {
    pub(crate) fn new(text: &str, display: &ToolDisplay) -> Self {
        if display.sensitive.is_empty() {
            return Self { text: text.into(), value: OnceLock::new() };
        }
        Self::from_value(display.mask_arguments(text))
    }

    /// Returns about how many bytes the arguments have as text.
    #[doc(hidden)]
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        match self.text.is_empty() {
            true => Value::to_string(self).len(),
            false => self.text.len(),
        }
    }

    pub(super) fn from_value(value: Value) -> Self {
        Self { text: "".into(), value: Arc::new(value).into() }
    }
}

impl Deref for MaskedArguments {
    type Target = Value;

    fn deref(&self) -> &Value {
        let read = || Arc::new(serde_json::from_str(&self.text).unwrap_or_default());
        self.value.get_or_init(read)
    }
}

/// Serializes the parsed value, not the original text, whose line breaks would break line-based
/// protocols.
impl Serialize for MaskedArguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl fmt::Debug for MaskedArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(text: &str, sensitive: &[&str]) -> MaskedArguments {
        let sensitive = sensitive.iter().map(|&name| name.to_owned()).collect();
        MaskedArguments::new(text, &ToolDisplay { sensitive, ..ToolDisplay::default() })
    }

    #[test]
    fn arguments_are_parsed_on_first_access() {
        let arguments = arguments("{\"a\":\n 1}", &[]);
        assert!(arguments.value.get().is_none());
        assert_eq!(arguments["a"], 1);
        assert_eq!(serde_json::to_string(&arguments).unwrap(), r#"{"a":1}"#);
        assert_eq!(*self::arguments("not JSON", &[]), Value::Null);
    }

    // F169: no event contains a secret, not even one that is never read.
    #[test]
    fn what_is_sensitive_is_not_kept() {
        let arguments = arguments(r#"{"token": "s3cret", "a": 1}"#, &["token"]);
        assert_eq!(*arguments, json!({ "token": "***", "a": 1 }));
        let kept = String::from_utf8_lossy(arguments.text.as_bytes());
        assert!(!format!("{arguments:?}{kept}").contains("s3cret"));
    }
}
