//! What a call touches, as rules and people see it.

use serde::{Deserialize, Serialize};

/// One thing that a call touches: a path, a command, an address.
///
/// # Examples
///
/// ```
/// use tool_sdk::Subject;
///
/// let subject = Subject::new("src/main.rs");
/// assert_eq!(subject.text(), "src/main.rs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    text: String,
}

impl Subject {
    /// The subject that rules match.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The text that rules match.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<T: Into<String>> From<T> for Subject {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
