//! Plugins in a toolset: their tools, hooks and rules come and go in one step.

use std::iter;
use std::sync::Arc;

use super::addition::{ToolAddition, ToolAudience};
use super::{Toolset, ToolsetState};
use crate::context::Session;
use crate::hook::RegisteredHook;
use crate::plugin::{Plugin, PluginError, PluginScope};
use crate::registry::{Registry, RegistryError};

impl Toolset {
    /// Loads a plugin into this toolset; [`Pipeline::plugins`](crate::Pipeline::plugins) loads one
    /// while calls run, and unloads it.
    ///
    /// # Errors
    ///
    /// Fails when the plugin fails, when its id is in use, and when the name of a tool is; the error
    /// names both places. Nothing has changed then.
    pub fn load_plugin(&self, plugin: &dyn Plugin) -> Result<Arc<PluginScope>, PluginError> {
        let scope = Arc::new(PluginScope::register(plugin)?);
        self.update_state(|registry, state| state.add_plugin(registry, &scope))?;
        Ok(scope)
    }

    /// Loads only the rules and hooks of a plugin that [`load_plugin`](Self::load_plugin) refused, so that
    /// its denials hold. `cause` is why the plugin was refused. When the plugin itself failed, its rules are
    /// not known, and every call is denied with the cause.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Plugin, PluginRegistrar, Registry, Rule, ToolError, Toolset, tool, tools};
    ///
    /// /// Ring the bell.
    /// #[tool(read)]
    /// fn ring() -> String {
    ///     "ding".to_owned()
    /// }
    ///
    /// struct QuietHours;
    ///
    /// impl Plugin for QuietHours {
    ///     fn id(&self) -> &str {
    ///         "quiet"
    ///     }
    ///
    ///     fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
    ///         registrar.add_tools(tools![ring]);
    ///         registrar.add_rules(["deny ring".parse::<Rule>().map_err(ToolError::config)?])
    ///     }
    /// }
    ///
    /// let tools = Toolset::new(Registry::builder().add(tools![ring]).build()?);
    /// let cause = tools.load_plugin(&QuietHours).expect_err("the host has a tool of that name");
    /// let scope = tools.load_restrictions(&QuietHours, &cause);
    /// assert_eq!((scope.tool_names().count(), scope.rules().len()), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_restrictions(&self, plugin: &dyn Plugin, cause: &PluginError) -> Arc<PluginScope> {
        let scope = Arc::new(PluginScope::register_restrictions(plugin, cause));
        self.update_state(|_, state| state.add_contributions(&scope));
        scope
    }

    /// Returns the loaded plugins, in the order in which they were loaded.
    #[must_use]
    pub fn plugins(&self) -> Vec<Arc<PluginScope>> {
        self.read_state().plugins.clone()
    }

    /// Removes the tools, hooks and rules of the plugins that `is_removed` names.
    pub(crate) fn take_plugins(
        &self,
        is_removed: impl Fn(&PluginScope) -> bool,
    ) -> Vec<Arc<PluginScope>> {
        if self.read_state().plugins.is_empty() {
            return Vec::new();
        }
        self.update_state(|_, state| {
            let all = std::mem::take(&mut state.plugins);
            let (removed, kept) = all.into_iter().partition(|scope| is_removed(scope));
            state.plugins = kept;
            state.remove_contributions(&removed);
            removed
        })
    }

    /// Returns the hooks of plugins that run before and after calls.
    pub(crate) fn plugin_hooks(&self) -> Vec<RegisteredHook> {
        self.read_state().plugins.iter().flat_map(|scope| scope.hooks.iter().cloned()).collect()
    }

    /// Returns the session as it is decided about with the rules of plugins as well, if there are
    /// some.
    pub(crate) fn session_with_plugin_rules(&self, session: &Session) -> Option<Session> {
        let state = self.read_state();
        let rules = || state.plugins.iter().flat_map(|scope| &scope.rules);
        rules().next()?;
        Some(session.clone().with_rules(rules().cloned()))
    }
}

impl ToolsetState {
    fn add_plugin(
        &mut self,
        registry: &Registry,
        scope: &Arc<PluginScope>,
    ) -> Result<(), PluginError> {
        let id = scope.id();
        if let Some(loaded) = self.plugins.iter().find(|loaded| loaded.id() == id) {
            let [first, second] = [loaded, scope].map(|scope| scope.place().to_owned());
            return Err(PluginError::LoadedAlready { id: id.to_owned(), first, second });
        }
        self.check_tools(registry, scope).map_err(|source| PluginError::Conflict {
            id: id.to_owned(),
            place: scope.place().to_owned(),
            source,
        })?;
        self.add_contributions(scope);
        Ok(())
    }

    fn add_contributions(&mut self, scope: &Arc<PluginScope>) {
        let audience = ToolAudience::everyone();
        let added =
            |tool: &Arc<_>| ToolAddition { tool: Arc::clone(tool), audience: audience.clone() };
        self.additions.extend(scope.tools.iter().map(added));
        self.filter.hooks.extend(scope.hooks.iter().cloned());
        self.filter.hooks.sort_by_key(|hook| hook.priority);
        self.plugins.push(Arc::clone(scope));
    }

    /// Fails when a name of the plugin's tools is in use, for any audience.
    fn check_tools(&self, registry: &Registry, scope: &PluginScope) -> Result<(), RegistryError> {
        let groups = ToolAddition::groups_beside(&self.additions, &ToolAudience::everyone());
        let groups = iter::once(Vec::new()).chain(groups);
        for beside in groups {
            let all = registry.iter().chain(&beside).chain(&scope.tools).cloned();
            Registry::builder().add(all.collect::<Vec<_>>()).build()?;
        }
        Ok(())
    }

    fn remove_contributions(&mut self, removed: &[Arc<PluginScope>]) {
        let is_tool = |added: &ToolAddition| {
            removed.iter().flat_map(|scope| &scope.tools).any(|it| Arc::ptr_eq(it, &added.tool))
        };
        let is_hook = |known: &RegisteredHook| {
            removed.iter().flat_map(|scope| &scope.hooks).any(|hook| hook.is_same_hook(known))
        };
        self.additions.retain(|added| !is_tool(added));
        self.filter.hooks.retain(|known| !is_hook(known));
    }
}
