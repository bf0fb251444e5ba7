//! Calls of unknown tools: they have an outcome and events like any other call, and the error
//! suggests similar names.

use std::sync::Arc;

use super::inner::PipelineInner;
use crate::call::RawArgs;
use crate::context::Session;
use crate::error::ToolError;
use crate::name::ToolName;
use crate::schema::Schema;
use crate::tool::{Definition, InvalidArgs, PreparedCall, Tool, ToolLabel};

/// Stands in for a tool that does not exist; it accepts no arguments.
pub(super) struct UnknownTool(Definition);

impl UnknownTool {
    /// Returns a placeholder for `name`. A name that no tool can have becomes `_`, so that it
    /// does not get into events.
    pub(super) fn for_name(name: &str) -> (Arc<dyn Tool>, Arc<ToolLabel>) {
        let name = ToolName::new(name.to_owned()).unwrap_or(const { ToolName::from_static("_") });
        let definition = Definition::new(name, "", Schema::default());
        let label = Arc::new(ToolLabel::new(&definition, None));
        (Arc::new(Self(definition)), label)
    }
}

impl Tool for UnknownTool {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn prepare(&self, _: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        Err(InvalidArgs::new(self.0.name.as_str().to_owned(), "there is no such tool"))
    }
}

impl PipelineInner {
    /// Returns the error of a call of `name`, with similar names or else the first tools.
    pub(super) fn unknown_tool_error(&self, session: &Session, name: &str) -> ToolError {
        let view = self.toolset.view_for(session);
        view.unknown_tool_error(name, || {
            let names: Vec<&str> =
                view.definitions().take(20).map(|definition| definition.name.as_str()).collect();
            match names.as_slice() {
                [] => "there are no tools here".to_owned(),
                names => format!("the tools are: {}", names.join(", ")),
            }
        })
    }
}
