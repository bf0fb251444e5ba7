//! A tool with another definition: of a plugin, or with another name.

use std::sync::Arc;

use super::{Definition, InvalidArgs, PreparedCall, Refinement, Tool};
use crate::call::RawArgs;
use crate::context::{PluginLifetime, RequiredService, Session};

/// A tool with another definition, of which only the name, the source and what people see differ.
pub(crate) struct RedefinedTool {
    tool: Arc<dyn Tool>,
    definition: Definition,
    lifetime: Option<PluginLifetime>,
}

impl RedefinedTool {
    /// Gives `tool` the definition that `change` makes of its own.
    pub(crate) fn new(tool: Arc<dyn Tool>, change: impl FnOnce(&mut Definition)) -> Self {
        let mut definition = tool.definition().clone();
        change(&mut definition);
        let lifetime = tool.plugin_lifetime().cloned();
        Self { tool, definition, lifetime }
    }

    /// Makes the tool one of a plugin.
    pub(crate) fn with_lifetime(mut self, lifetime: PluginLifetime) -> Self {
        self.lifetime = Some(lifetime);
        self
    }
}

impl Tool for RedefinedTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        self.tool.prepare(args).map_err(|faults| faults.in_calls_of(&self.definition.name))
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
        self.lifetime.as_ref()
    }
}
