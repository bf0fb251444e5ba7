//! A tool of a plugin: the tool itself, known to be the plugin's.

use std::sync::Arc;

use crate::call::RawArgs;
use crate::context::{PluginLifetime, RequiredService, Session};
use crate::tool::{Definition, InvalidArgs, PreparedCall, Refinement, Tool, ToolSource};

/// A tool of a plugin.
pub(super) struct PluginTool {
    tool: Arc<dyn Tool>,
    definition: Definition,
    lifetime: PluginLifetime,
}

impl PluginTool {
    pub(super) fn new(tool: Arc<dyn Tool>, lifetime: PluginLifetime) -> Self {
        let mut definition = tool.definition().clone();
        definition.source = ToolSource::Plugin { id: lifetime.id.to_string() };
        Self { tool, definition, lifetime }
    }
}

impl Tool for PluginTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        self.tool.prepare(args)
    }

    fn required_services(&self) -> Vec<RequiredService> {
        self.tool.required_services()
    }

    fn argument_names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.tool.argument_names(name)
    }

    fn argument_default(&self, name: &str) -> Option<serde_json::Value> {
        self.tool.argument_default(name)
    }

    fn takes_path(&self, name: &str) -> bool {
        self.tool.takes_path(name)
    }

    fn may_name_resources(&self) -> bool {
        self.tool.may_name_resources()
    }

    fn refuses_duplicate_keys(&self) -> bool {
        self.tool.refuses_duplicate_keys()
    }

    fn unusable_reason(&self) -> Option<String> {
        self.tool.unusable_reason()
    }

    fn refine(&self, session: &Session) -> Refinement {
        self.tool.refine(session)
    }

    fn plugin_lifetime(&self) -> Option<&PluginLifetime> {
        Some(&self.lifetime)
    }
}
