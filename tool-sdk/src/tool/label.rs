//! What is said of a tool wherever something happens to a call of it.

use std::sync::Arc;

use super::{Definition, ToolDisplay, ToolSource};
use crate::name::ToolName;

/// What a tool is called, how it is shown and where it comes from.
///
/// One for all calls of a tool, so that telling of it costs nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolLabel {
    /// The tool's name, as the registry has it.
    pub name: ToolName,
    /// How it is shown.
    pub display: Arc<ToolDisplay>,
    /// Where it comes from.
    pub source: ToolSource,
}

impl ToolLabel {
    pub(crate) fn from_definition(definition: &Definition) -> Self {
        Self {
            name: definition.name.clone(),
            display: Arc::clone(&definition.display),
            source: definition.source.clone(),
        }
    }

    /// The label of a tool of which only the name is known.
    pub(crate) fn from_name(name: ToolName) -> Self {
        Self { name, display: Arc::default(), source: ToolSource::default() }
    }
}
