//! Loads and unloads plugins while calls run.

use std::fmt;
use std::sync::{Arc, Weak};

use super::Pipeline;
use super::inner::PipelineInner;
use crate::error::ToolError;
use crate::hook::RegisteredHook;
use crate::permission::PendingApprovals;
use crate::plugin::{DynPluginHost, Plugin, PluginError, PluginHost, PluginPart, PluginScope};
use crate::toolset::Toolset;

/// Loads and unloads the plugins of a [`Pipeline`] while its calls run.
///
/// Cheap to clone, and does not keep the pipeline alive, so that a session can have it as a service.
/// Create it after the pipeline is set up: a later setter of the pipeline replaces the toolset.
#[derive(Clone)]
pub struct PluginManager {
    toolset: Weak<Toolset>,
    pending_approvals: Arc<PendingApprovals>,
    hosts: Vec<Arc<dyn DynPluginHost>>,
}

impl fmt::Debug for PluginManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.loaded()).finish()
    }
}

impl PluginManager {
    /// Adds the host of a part of plugins, in the place of an earlier one of the same part.
    #[must_use]
    pub fn with_host(mut self, host: impl PluginHost) -> Self {
        let part = host.part();
        self.hosts.retain(|known| known.part() != part);
        self.hosts.push(Arc::new(host));
        self
    }

    /// Whether there is a host for this part of plugins.
    #[must_use]
    pub fn has_host(&self, part: PluginPart) -> bool {
        self.hosts.iter().any(|host| host.part() == part)
    }

    /// Lets the hosts add the other parts of a plugin that was [loaded](Self::load). Returns what the
    /// user should know, one line each.
    pub async fn attach_parts(&self, scope: &PluginScope) -> Vec<String> {
        let mut notes = Vec::new();
        for host in &self.hosts {
            notes.extend(host.attach(scope).await);
        }
        notes
    }

    /// Loads a plugin. Its tools can be called from now on.
    ///
    /// # Errors
    ///
    /// Fails when the plugin fails, and when its id or the name of a tool is in use; the error names
    /// both places. Nothing has changed then.
    pub fn load(&self, plugin: &dyn Plugin) -> Result<Arc<PluginScope>, PluginError> {
        let Some(toolset) = self.toolset.upgrade() else {
            let (id, place) = (plugin.id().to_owned(), "this program".to_owned());
            let source = ToolError::unavailable("the pipeline is gone");
            return Err(PluginError::Failed { id, place, source });
        };
        let scope = toolset.load_plugin(plugin)?;
        self.pending_approvals.notify_policy_change();
        Ok(scope)
    }

    /// Loads only the rules and hooks of a plugin that [`load`](Self::load) refused because of `cause`, so
    /// that its denials hold. When the plugin itself failed, every call is denied with the cause.
    pub fn load_restrictions(&self, plugin: &dyn Plugin, cause: &PluginError) {
        if let Some(toolset) = self.toolset.upgrade() {
            toolset.load_restrictions(plugin, cause);
            self.pending_approvals.notify_policy_change();
        }
    }

    /// Unloads a plugin: its tools, hooks and rules are gone at once; running calls of its tools end
    /// with an error, the hosts remove its other parts, and what the plugin started ends. Returns the names
    /// of what did not end within ten seconds.
    ///
    /// # Errors
    ///
    /// Fails when no such plugin is loaded.
    pub async fn unload(&self, id: &str) -> Result<Vec<String>, ToolError> {
        let toolset = self.toolset.upgrade();
        let removed = toolset.map(|toolset| toolset.take_plugins(|scope| scope.id() == id));
        // Of two plugins of one id, the second has only rules and hooks.
        let removed = removed.unwrap_or_default();
        if removed.is_empty() {
            let id: String = id.chars().take(100).collect();
            let text = format_args!("the plugin `{}` is not loaded", id.escape_debug());
            return Err(ToolError::not_found(text));
        }
        // Calls that wait for an approval end as well.
        self.pending_approvals.notify_policy_change();
        // A task, so that a caller that goes away leaves nothing running.
        let hosts = self.hosts.clone();
        let ending = tokio::spawn(async move {
            let mut failed = Vec::new();
            for scope in removed {
                for host in &hosts {
                    failed.extend(host.detach(&scope).await);
                }
                failed.extend(scope.end().await);
            }
            failed
        });
        Ok(ending.await.unwrap_or_else(|_| vec!["the plugin".to_owned()]))
    }

    /// Returns the loaded plugins, in the order in which they were loaded.
    #[must_use]
    pub fn loaded(&self) -> Vec<Arc<PluginScope>> {
        self.toolset.upgrade().map(|toolset| toolset.plugins()).unwrap_or_default()
    }
}

impl Pipeline {
    /// Returns the manager of the pipeline's plugins.
    #[must_use]
    pub fn plugins(&self) -> PluginManager {
        PluginManager {
            toolset: Arc::downgrade(&self.inner.toolset),
            pending_approvals: Arc::clone(&self.inner.pending_approvals),
            hosts: Vec::new(),
        }
    }
}

impl PipelineInner {
    /// Returns the hooks of the host and of plugins, in the order in which they run.
    pub(super) fn current_hooks(&self) -> Arc<[RegisteredHook]> {
        let of_plugins = self.toolset.plugin_hooks();
        if of_plugins.is_empty() {
            return Arc::clone(&self.hooks);
        }
        let mut all: Vec<_> = self.hooks.iter().cloned().chain(of_plugins).collect();
        all.sort_by_key(|hook| hook.priority);
        all.into()
    }
}
