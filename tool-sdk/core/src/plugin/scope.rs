//! What a loaded plugin brings, in one owner.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::{Plugin, PluginError, PluginRegistrar};
use crate::context::{CloseCallbacks, PluginLifetime};
use crate::error::ToolError;
use crate::hook::{Hook, HookContext, HookDecision, HookPriority, RegisteredHook};
use crate::permission::Rule;
use crate::tool::Tool;

/// How long running calls, and the work of hooks, have to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A loaded plugin: everything that it brings.
///
/// When the last handle is dropped, the calls of its tools end.
pub struct PluginScope {
    pub(super) lifetime: PluginLifetime,
    pub(super) place: String,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) hooks: Vec<RegisteredHook>,
    pub(crate) rules: Vec<Rule>,
    pub(super) skill_folders: Vec<PathBuf>,
    pub(super) agent_folders: Vec<PathBuf>,
    pub(super) mcp_servers: Vec<(String, Value)>,
    pub(super) callbacks: CloseCallbacks,
}

impl fmt::Debug for PluginScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginScope")
            .field("id", &self.lifetime.id)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl PluginScope {
    /// Lets the plugin register; a panic in it is a failure.
    pub(crate) fn register(plugin: &dyn Plugin) -> Result<Self, PluginError> {
        let panicked = |_| ToolError::internal("it panicked");
        let id = catch_unwind(AssertUnwindSafe(|| plugin.id().to_owned()));
        let id = id.unwrap_or_else(|_| "nameless".to_owned());
        let mut registrar = PluginRegistrar::new(&id);
        let registered = catch_unwind(AssertUnwindSafe(|| plugin.register(&mut registrar)));
        match registered.map_err(panicked).flatten() {
            Ok(()) => Ok(registrar.finish()),
            Err(source) => {
                Err(PluginError::Failed { id, place: registrar.place().to_owned(), source })
            }
        }
    }

    /// Lets a plugin register that was refused because of `cause`, and keeps its rules and hooks. When it
    /// fails again, the scope denies every call.
    pub(crate) fn register_restrictions(plugin: &dyn Plugin, cause: &PluginError) -> Self {
        if let Ok(mut scope) = Self::register(plugin) {
            scope.tools.clear();
            scope.skill_folders.clear();
            scope.agent_folders.clear();
            scope.mcp_servers.clear();
            return scope;
        }
        let mut registrar = PluginRegistrar::new(cause.id());
        registrar.set_place(cause.place());
        let hook = DenyAllHook { reason: cause.to_string() };
        registrar.add_hook("*", HookPriority::SECURITY, Arc::new(hook));
        registrar.finish()
    }

    /// Returns the id of the plugin.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.lifetime.id
    }

    /// Returns where the plugin comes from.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the names of its tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.definition().name.as_str())
    }

    /// Returns the names of its hooks.
    pub fn hook_names(&self) -> impl Iterator<Item = &str> {
        self.hooks.iter().map(|hook| &*hook.name)
    }

    /// Returns its rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns its folders with skills.
    #[must_use]
    pub fn skill_folders(&self) -> &[PathBuf] {
        &self.skill_folders
    }

    /// Returns its folders with files of agents.
    #[must_use]
    pub fn agent_folders(&self) -> &[PathBuf] {
        &self.agent_folders
    }

    /// Returns its MCP servers by their names, in the form of `.mcp.json`.
    #[must_use]
    pub fn mcp_servers(&self) -> &[(String, Value)] {
        &self.mcp_servers
    }

    /// Ends what the plugin brings: running calls, then work of hooks, then what the plugin registered
    /// to be ended. Returns the names of what did not end in time.
    pub(crate) async fn end(&self) -> Vec<String> {
        self.lifetime.unloading.cancel();
        let mut failed = Vec::new();
        if timeout(END_TIMEOUT, self.lifetime.calls.write()).await.is_err() {
            failed.push("running calls".to_owned());
        }
        for registered in &self.hooks {
            let finish = AssertUnwindSafe(async { registered.hook.finish().await }).catch_unwind();
            if !matches!(timeout(END_TIMEOUT, finish).await, Ok(Ok(()))) {
                failed.push(format!("hook `{}`", registered.name));
            }
        }
        failed.extend(self.callbacks.run().await);
        failed
    }
}

/// Denies every call, because the rules of a plugin are not known.
struct DenyAllHook {
    reason: String,
}

impl Hook for DenyAllHook {
    async fn before(&self, _call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let text = format!("{}; no tool is called without its rules", self.reason);
        Ok(HookDecision::deny(text))
    }
}

impl Drop for PluginScope {
    fn drop(&mut self) {
        self.lifetime.unloading.cancel();
    }
}
