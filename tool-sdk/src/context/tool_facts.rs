//! What a running tool may learn of the other tools: what models are told of them.

use serde::Serialize;
use serde_json::Value;

use crate::name::ToolName;

/// A tool that the session can see, as models are told of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolFacts {
    /// Its name.
    pub name: ToolName,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When to use it.
    pub description: String,
    /// The group that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

impl ToolFacts {
    /// A tool of which nothing more is known.
    #[must_use]
    pub fn new(name: ToolName, description: impl Into<String>, parameters: Value) -> Self {
        Self { name, title: None, description: description.into(), category: None, parameters }
    }
}
