//! The description of another tool, as a running tool may see it.

use serde::Serialize;
use serde_json::Value;

use crate::name::ToolName;

/// A tool that the session can see, as models see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolFacts {
    /// Its name.
    pub name: ToolName,
    /// Its title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description: what it does and when to use it.
    pub description: String,
    /// The group that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

impl ToolFacts {
    /// Creates the facts without a title and a category.
    #[must_use]
    pub fn new(name: ToolName, description: impl Into<String>, parameters: Value) -> Self {
        Self { name, title: None, description: description.into(), category: None, parameters }
    }
}
