//! Carries out a plan: unloads the plugin, changes its files and records, and loads it again.
//!
//! **Invariant:** a change that has begun is completed or undone, also when its call is cancelled. No call
//! runs without the rules of an enabled plugin while that plugin changes, nor after a change that fails.

use std::sync::Arc;

use tokio::sync::Mutex;
use tool_sdk::{Context, PluginError, PluginManager, PluginPart, PluginScope, ToolError};

use super::library::{FoundPlugin, PluginPlaces, PluginStatus};
use super::package_plugin::PackagePlugin;
use super::plan::{PluginAction, PluginPlan};

/// Plugins change one after the other: a change whose call was cancelled still runs.
pub(super) static CHANGES: Mutex<()> = Mutex::const_new(());

/// A plan that is carried out, in the program that runs.
pub(super) struct PluginChange {
    pub(super) plan: Arc<PluginPlan>,
    pub(super) places: PluginPlaces,
    pub(super) plugins: Option<Arc<PluginManager>>,
}

impl PluginChange {
    pub(super) fn new(plan: Arc<PluginPlan>, places: PluginPlaces, cx: &Context) -> Self {
        Self { plan, places, plugins: cx.session().service() }
    }

    /// Carries out the plan in a task of its own, which goes on when the call is cancelled. Returns what is
    /// to be said about it.
    pub(super) async fn carry_out(self) -> Result<Vec<String>, ToolError> {
        let turn = CHANGES.lock().await;
        let task = tokio::spawn(async move {
            let _turn = turn;
            self.run().await
        });
        task.await.unwrap_or_else(|_| Err(ToolError::internal("the change of the plugin panicked")))
    }

    async fn run(self) -> Result<Vec<String>, ToolError> {
        // A plugin of the name that runs is another one, or the copy of the version that is enabled.
        let is_kept = matches!(self.plan.action, PluginAction::Install | PluginAction::Update);
        let is_loaded = !is_kept && self.loaded_manager().is_some();
        if is_loaded {
            self.hold_calls_back()?;
        }
        // What runs ends before its files change.
        let unloaded = if is_loaded { self.unload().await } else { Vec::new() };
        let (plan, places) = (Arc::clone(&self.plan), self.places.clone());
        let carried_out = run_blocking(move || plan.carry_out(&places)).await;
        let (loaded, failure) = match carried_out {
            Ok(()) if self.is_loading() => match self.load().await {
                Ok(loaded) => (loaded, None),
                Err(error) => (None, Some(error)),
            },
            Ok(()) => (None, None),
            // What is still enabled restricts again.
            Err(error) if is_loaded => (self.load().await.ok().flatten(), Some(error)),
            Err(error) => (None, Some(error)),
        };
        if is_loaded {
            self.let_calls_run().await;
        }
        let attached = match &loaded {
            Some(scope) => self.attach(scope).await,
            None if self.is_loading() => {
                vec!["It is loaded when the program starts again.".to_owned()]
            }
            None => Vec::new(),
        };
        match failure {
            Some(error) => Err(error),
            None => Ok(unloaded.into_iter().chain(attached).collect()),
        }
    }

    /// Whether the plugin is loaded at the end.
    fn is_loading(&self) -> bool {
        matches!(self.plan.action, PluginAction::Enable | PluginAction::Reload)
    }

    /// Returns the manager of the program's plugins, if the plugin is loaded.
    fn loaded_manager(&self) -> Option<&PluginManager> {
        let plugins = self.plugins.as_deref()?;
        let is_it = |id: &str| id == self.plan.loaded_name;
        plugins.loaded().iter().any(|scope| is_it(scope.id())).then_some(plugins)
    }

    /// Denies calls until the plugin is loaded again, or is done with. Fails when calls would run.
    fn hold_calls_back(&self) -> Result<(), ToolError> {
        let Some(plugins) = &self.plugins else { return Ok(()) };
        let name = &self.plan.loaded_name;
        let why = format!("the plugin `{name}` is being changed; try again when that is done");
        let refusing = PackagePlugin::refuse_calls(&self.change_name(), &self.plan.folder, why);
        // A call that the hooks saw already meets the rules later, which then must not be gone.
        let loaded = plugins.loaded();
        let scopes = loaded.iter().filter(|scope| scope.id() == self.plan.loaded_name);
        let refusing = refusing.with_rules(scopes.flat_map(|scope| scope.rules()).cloned());
        match plugins.load(&refusing) {
            // It is loaded already when an earlier change panicked.
            Ok(_) | Err(PluginError::LoadedAlready { .. }) => Ok(()),
            Err(error) => {
                let text = format_args!(
                    "no call can be held back while the plugin `{name}` changes: {error}"
                );
                Err(ToolError::failed(text).hint("the user starts the program again"))
            }
        }
    }

    async fn let_calls_run(&self) {
        if let Some(plugins) = &self.plugins {
            let _ = plugins.unload(&self.change_name()).await;
        }
    }

    /// Returns the id of what holds calls back; no plugin has a name with spaces.
    fn change_name(&self) -> String {
        format!("{} (being changed)", self.plan.loaded_name)
    }

    /// Unloads the plugin from the running program; returns what is to be said about it.
    async fn unload(&self) -> Vec<String> {
        let Some(plugins) = &self.plugins else { return Vec::new() };
        let failed = plugins.unload(&self.plan.loaded_name).await.unwrap_or_default();
        failed.into_iter().map(|what| format!("This did not end in time: {what}")).collect()
    }

    /// Loads an enabled plugin into the running program, if that has a manager of plugins. Where it cannot be
    /// read whether the plugin is enabled, calls stay denied in its place.
    async fn load(&self) -> Result<Option<Arc<PluginScope>>, ToolError> {
        let Some(plugins) = &self.plugins else { return Ok(None) };
        let (folder, places) = (self.plan.folder.clone(), self.places.clone());
        let opened = run_blocking(move || {
            let library = places.find_plugins();
            let is_enabled =
                |it: &&FoundPlugin| it.folder == folder && it.status != PluginStatus::Disabled;
            match (library.plugins.iter().find(is_enabled), library.unreadable_records.first()) {
                (Some(found), _) => Ok(Some(PackagePlugin::open_or_refuse(found, &places))),
                (None, None) => Ok(None),
                (None, Some(record)) => {
                    let text = format_args!("the record {} cannot be read", record.display());
                    Err(ToolError::conflict(text))
                }
            }
        });
        let (plugin, problem) = match opened.await {
            Ok(Some(opened)) => opened,
            Ok(None) => return Err(ToolError::conflict("the plugin is not enabled")),
            Err(error) => self.refuse_unknown(&error),
        };
        let scope = plugins.load(&plugin).map_err(|error| {
            plugins.load_restrictions(&plugin, &error);
            let text = format_args!(
                "it is enabled, but cannot be loaded: {error}; its rules and hooks hold all the same"
            );
            ToolError::config(text).hint("the user disables it, or what it conflicts with")
        })?;
        match problem {
            Some(problem) => Err(ToolError::conflict(problem)),
            None => Ok(Some(scope)),
        }
    }

    /// Returns a plugin that denies every call in the place of the changed one, of which is not known,
    /// because of `error`, whether it is enabled. Returns what is to be said about it as well.
    fn refuse_unknown(&self, error: &ToolError) -> (PackagePlugin, Option<String>) {
        let name = &self.plan.loaded_name;
        let why = format!(
            "it is not known whether the plugin `{name}` is enabled: {}; no tool is called without its \
             rules: the user corrects that, and enables the plugin again",
            error.message()
        );
        (PackagePlugin::refuse_calls(name, &self.plan.folder, why.clone()), Some(why))
    }

    /// Lets the program add what else the plugin brings. Returns what is to be said about a loaded plugin.
    async fn attach(&self, scope: &PluginScope) -> Vec<String> {
        let Some(plugins) = &self.plugins else { return Vec::new() };
        let tools: Vec<String> = scope.tool_names().map(|name| format!("`{name}`")).collect();
        let mut notes = Vec::new();
        if !tools.is_empty() {
            notes.push(format!("Its tools can be called now: {}", tools.join(", ")));
        }
        notes.extend(plugins.attach_parts(scope).await);
        let parts = [
            (PluginPart::Agents, scope.agent_folders().is_empty()),
            (PluginPart::McpServers, scope.mcp_servers().is_empty()),
        ];
        for (part, is_empty) in parts {
            if !is_empty && !plugins.has_host(part) {
                let part = part.as_str();
                notes.push(format!("Its {part} are there when the program starts again."));
            }
        }
        notes
    }
}

/// Runs work that blocks, also when the call that wants it is cancelled.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ToolError::internal("the change of the plugin panicked")))
}
