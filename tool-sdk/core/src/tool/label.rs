//! The label of a tool in events.

use std::sync::Arc;

use super::{Definition, ToolDisplay, ToolSource};
use crate::name::ToolName;

/// The name, display metadata and source of a tool.
///
/// Shared by all calls of a tool, so that an event costs no copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolLabel {
    /// The tool's name in the registry.
    pub name: ToolName,
    /// The display metadata.
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

    /// Creates the label of a tool of which only the name is known.
    pub(crate) fn from_name(name: ToolName) -> Self {
        Self { name, display: Arc::default(), source: ToolSource::default() }
    }
}
