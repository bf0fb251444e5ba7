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
    /// Whether the host set another summary than that of the tool.
    pub(crate) has_host_summary: bool,
}

impl ToolLabel {
    /// Creates the label of a tool; `display` are the metadata that the host set in place of some
    /// of its own.
    pub(crate) fn new(definition: &Definition, display: Option<&ToolDisplay>) -> Self {
        let own = &definition.display;
        let mut shown = display.map_or_else(|| Arc::clone(own), |it| own.with_override(it).into());
        if let (None, Some(category)) = (&shown.category, &definition.category) {
            Arc::make_mut(&mut shown).category = Some(category.clone().into_owned());
        }
        Self {
            name: definition.name.clone(),
            display: shown,
            source: definition.source.clone(),
            has_host_summary: display.is_some_and(|display| display.summary.is_some()),
        }
    }

    /// Creates the label of a tool of which only the name is known.
    pub(crate) fn from_name(name: ToolName) -> Self {
        let (display, source, has_host_summary) = Default::default();
        Self { name, display, source, has_host_summary }
    }
}
