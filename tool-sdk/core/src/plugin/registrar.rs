//! What a plugin brings, while it is being loaded.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::scope::PluginScope;
use crate::context::{CloseCallbacks, PluginLifetime};
use crate::error::ToolError;
use crate::hook::{Hook, HookPriority, RegisteredHook};
use crate::permission::{Action, Rule};
use crate::tool::{IntoTools, RedefinedTool, Tool, ToolSource};

/// Collects what a [`Plugin`](super::Plugin) brings.
pub struct PluginRegistrar {
    lifetime: PluginLifetime,
    place: String,
    tools: Vec<Arc<dyn Tool>>,
    hooks: Vec<RegisteredHook>,
    rules: Vec<Rule>,
    skill_folders: Vec<PathBuf>,
    agent_folders: Vec<PathBuf>,
    mcp_servers: Vec<(String, Value)>,
    callbacks: CloseCallbacks,
}

impl fmt::Debug for PluginRegistrar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PluginRegistrar").field(&self.lifetime.id).finish()
    }
}

impl PluginRegistrar {
    pub(super) fn new(id: &str) -> Self {
        Self {
            lifetime: PluginLifetime::new(id),
            place: "this program".to_owned(),
            tools: Vec::new(),
            hooks: Vec::new(),
            rules: Vec::new(),
            skill_folders: Vec::new(),
            agent_folders: Vec::new(),
            mcp_servers: Vec::new(),
            callbacks: CloseCallbacks::default(),
        }
    }

    /// Sets where the plugin comes from, such as its folder, for messages; `this program` by default.
    pub fn set_place(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }

    /// Returns where the plugin comes from.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Adds tools. Their source becomes the plugin.
    pub fn add_tools(&mut self, tools: impl IntoTools) {
        self.tools.extend(tools.into_tools());
    }

    /// Adds a hook for the tools whose names match `pattern`. As a hook of a plugin it never allows a
    /// call, even if [`Hook::may_allow`] says so.
    pub fn add_hook(
        &mut self,
        pattern: impl Into<String>,
        priority: HookPriority,
        hook: Arc<impl Hook>,
    ) {
        self.hooks.push(RegisteredHook::new(pattern, priority, hook).without_allow());
    }

    /// Adds rules for the calls of every tool. They only make decisions stricter: each call is also
    /// decided without them, and the stricter decision holds.
    ///
    /// # Errors
    ///
    /// Fails when a rule allows something.
    pub fn add_rules(&mut self, rules: impl IntoIterator<Item = Rule>) -> Result<(), ToolError> {
        for rule in rules {
            if rule.action == Action::Allow {
                let text = format_args!("a plugin may not have the rule `{rule}`");
                return Err(ToolError::config(text).hint("only `deny` and `ask` are possible"));
            }
            let origin = format!("plugin `{}`", self.lifetime.id);
            self.rules.push(rule.origin(origin).locked());
        }
        Ok(())
    }

    /// Adds a folder with skills, each in a folder of its own.
    pub fn add_skill_folder(&mut self, folder: impl Into<PathBuf>) {
        self.skill_folders.push(folder.into());
    }

    /// Adds a folder with files of agents.
    pub fn add_agent_folder(&mut self, folder: impl Into<PathBuf>) {
        self.agent_folders.push(folder.into());
    }

    /// Adds an MCP server in the form of `.mcp.json`: an object with `command`, `args` and `env`, or with
    /// `url` and `headers`. The program connects to it as to a configured one: when it starts, or when its
    /// [`PluginHost`](super::PluginHost) attaches the plugin.
    pub fn add_mcp_server(&mut self, name: impl Into<String>, server: Value) {
        self.mcp_servers.push((name.into(), server));
    }

    /// Registers what ends when the plugin is unloaded, after its calls have ended; `name` is for the
    /// report of what could not be ended. It has ten seconds.
    pub fn on_unload<F>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        end: impl FnOnce() -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.callbacks.add(name.into(), Box::new(move || Box::pin(end())));
    }

    /// Returns a token that is triggered when the plugin is being unloaded.
    #[must_use]
    pub fn unload_token(&self) -> CancellationToken {
        self.lifetime.unloading.clone()
    }

    /// Returns the scope that owns all of it.
    pub(super) fn finish(self) -> PluginScope {
        let lifetime = self.lifetime;
        let source = ToolSource::Plugin { id: lifetime.id.to_string() };
        let own = |tool| -> Arc<dyn Tool> {
            let tool = RedefinedTool::new(tool, |definition| definition.source = source.clone());
            Arc::new(tool.with_lifetime(lifetime.clone()))
        };
        PluginScope {
            tools: self.tools.into_iter().map(own).collect(),
            place: self.place,
            hooks: self.hooks,
            rules: self.rules,
            skill_folders: self.skill_folders,
            agent_folders: self.agent_folders,
            mcp_servers: self.mcp_servers,
            callbacks: self.callbacks,
            lifetime,
        }
    }
}
