//! The arguments of a call, as whoever listens may see them.
//!
//! The text is kept as it came and is read as JSON when somebody looks, because most
//! listeners do not. Only what holds something sensitive is read at once, so that no event
//! ever carries it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::tool::Display;

/// The arguments of a call, sensitive values masked; used like the [`Value`] that they are.
///
/// Text that is not JSON is `null`.
#[derive(Clone)]
pub struct Arguments {
    text: Text,
    value: OnceLock<Arc<Value>>,
}

impl Arguments {
    pub(crate) fn new(text: &str, display: &Display) -> Self {
        if display.sensitive.is_empty() {
            return Self::kept(text, Self::long(text));
        }
        Self::of_value(display.masked(text))
    }

    /// The memory that arguments need which are too long to stand in an event.
    #[inline(always)]
    pub(crate) fn long(text: &str) -> Option<Arc<str>> {
        (text.len() > SHORT).then(|| text.into())
    }

    /// Arguments with nothing sensitive in them, and the memory that they [need](Self::long).
    #[inline(always)]
    pub(super) fn kept(text: &str, long: Option<Arc<str>>) -> Self {
        let text = long.map_or_else(|| Text::short(text), Text::Long);
        Self { text, value: OnceLock::new() }
    }

    /// Whether they own nothing that has to be dropped.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.text, Text::Short { .. }) && self.value.get().is_none()
    }

    pub(super) fn of_value(value: Value) -> Self {
        Self { text: Text::short(""), value: Arc::new(value).into() }
    }
}

/// A text that is kept: a short one where it stands, so that it needs no memory of its own.
#[derive(Clone)]
enum Text {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Arc<str>),
}

/// The most bytes of a short text: as many as leave an event without a gap.
const SHORT: usize = 22;

impl Text {
    /// A text that is short.
    #[inline(always)]
    fn short(text: &str) -> Self {
        let mut bytes = [0; SHORT];
        let length = text.len().min(SHORT);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self::Short { length: length as u8, bytes }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(text) => text.as_bytes(),
        }
    }
}

impl Deref for Arguments {
    type Target = Value;

    fn deref(&self) -> &Value {
        let read = || Arc::new(serde_json::from_slice(self.text.as_bytes()).unwrap_or_default());
        self.value.get_or_init(read)
    }
}

/// Written anew, not as it came: blanks that a model sends do not reach a protocol of lines.
impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(text: &str, sensitive: &[&str]) -> Arguments {
        let sensitive = sensitive.iter().map(|&name| name.to_owned()).collect();
        Arguments::new(text, &Display { sensitive, ..Display::default() })
    }

    #[test]
    fn they_are_read_when_somebody_looks() {
        let arguments = arguments("{\"a\":\n 1}", &[]);
        assert!(arguments.value.get().is_none());
        assert_eq!(arguments["a"], 1);
        assert_eq!(serde_json::to_string(&arguments).unwrap(), r#"{"a":1}"#);
        assert_eq!(*self::arguments("not JSON", &[]), Value::Null);
    }

    // F169: a secret is in no event, not even unseen.
    #[test]
    fn what_is_sensitive_is_not_kept() {
        let arguments = arguments(r#"{"token": "s3cret", "a": 1}"#, &["token"]);
        assert_eq!(*arguments, json!({ "token": "***", "a": 1 }));
        let kept = String::from_utf8_lossy(arguments.text.as_bytes());
        assert!(!format!("{arguments:?}{kept}").contains("s3cret"));
    }
}
