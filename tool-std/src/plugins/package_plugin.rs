//! A plugin in a folder, as the toolset loads it.
//!
//! **Invariant:** an enabled plugin is never passed over. Where its approved files are gone, its rules are not
//! known, and no tool is called until the user enables or disables it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::{
    ExternalHooks, Hook, HookContext, HookDecision, HookPriority, Plugin, PluginRegistrar,
    ProgramFolders, Rule, ToolError,
};

use super::command_tool::{build_tool, expand_root, plugin_env};
use super::library::{FoundPlugin, PluginPlaces, PluginStatus};
use super::line_process::LineProcesses;
use super::manifest::{PluginManifest, ServerDeclaration};

/// The tool with which the user gets out of a plugin whose files are gone.
const MANAGER_TOOL: &str = "plugin_manager";

/// A plugin in a folder whose files are those that the user approved. Where these are gone, it denies every
/// call but those of `plugin_manager`.
#[derive(Clone, Debug)]
pub struct PackagePlugin {
    pub(super) manifest: PluginManifest,
    /// The folder in which the plugin lies, for people.
    place: PathBuf,
    /// The folder from which it runs.
    pub(super) root: PathBuf,
    hash: String,
    /// The folder in which its hooks run.
    project: Option<PathBuf>,
    /// Why its approved files cannot be used.
    refusal: Option<String>,
}

/// The enabled plugins of a user and a project, and what is wrong with them and with others.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct EnabledPlugins {
    /// The plugins, in the order in which they are loaded.
    pub plugins: Vec<PackagePlugin>,
    /// Why others are not used, and which ones have changed, one line each.
    pub problems: Vec<String>,
}

impl EnabledPlugins {
    /// Finds the enabled plugins in the state folder of `folders` and in those of `roots` that the user
    /// trusts.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::ProgramFolders;
    /// use tool_std::plugins::EnabledPlugins;
    ///
    /// let found = EnabledPlugins::find(&ProgramFolders::default(), &[]);
    /// assert!(found.plugins.is_empty() && found.problems.is_empty());
    /// ```
    #[must_use]
    pub fn find(folders: &ProgramFolders, roots: &[PathBuf]) -> Self {
        let places = PluginPlaces {
            roots: roots.to_owned(),
            folders: folders.clone(),
            ..PluginPlaces::default()
        };
        let library = places.find_plugins();
        let mut found = Self { plugins: Vec::new(), problems: library.problems };
        for plugin in &library.plugins {
            if plugin.status == PluginStatus::Disabled {
                continue;
            }
            let (opened, problem) = PackagePlugin::open_or_refuse(plugin, &places);
            found.plugins.push(opened);
            found.problems.extend(problem);
        }
        for record in &library.unreadable_records {
            let refusing = PackagePlugin::refuse_for_record(record);
            found.problems.extend(refusing.refusal.clone());
            found.plugins.push(refusing);
        }
        found
    }
}

impl PackagePlugin {
    /// Opens an enabled plugin, where it runs.
    pub(super) fn open(found: &FoundPlugin, places: &PluginPlaces) -> Result<Self, ToolError> {
        let pin = found.approved.as_ref().ok_or_else(|| {
            ToolError::conflict(format_args!("`{}` is not enabled", found.manifest.name))
        })?;
        let (root, package) = (places.run_folder(&found.folder)?, places.read_approved(pin)?);
        let opened = Self {
            manifest: PluginManifest::read(&package)?,
            place: found.folder.clone(),
            root,
            hash: pin.hash.clone(),
            project: places.roots.first().cloned(),
            refusal: None,
        };
        check_tools(&opened.manifest, &opened.root)?;
        Ok(opened)
    }

    /// Opens an enabled plugin. Where that fails, the plugin denies every call. Returns what is to be said
    /// about it as well.
    pub(super) fn open_or_refuse(
        found: &FoundPlugin,
        places: &PluginPlaces,
    ) -> (Self, Option<String>) {
        let name = found.loaded_name();
        let called = format!("the plugin `{name}` of {}", found.folder.display());
        let way_out = "enable it again, which shows what it is now, or disable it";
        if let Some(doubt) = &found.doubt {
            let why = format!(
                "{called} is enabled, but {doubt}; no tool is called without its rules: the user \
                 corrects that file, or disables the plugin"
            );
            return (Self::refuse_calls(name, &found.folder, why.clone()), Some(why));
        }
        match (Self::open(found, places), &found.problem) {
            (Ok(opened), _) if found.status == PluginStatus::Enabled => (opened, None),
            (Ok(opened), problem) => {
                let why = problem.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
                let text = format!(
                    "{called} has changed since it was enabled{why}; the files that were enabled are \
                     used; {way_out}"
                );
                (opened, Some(text))
            }
            (Err(error), _) => {
                let why = format!(
                    "{called} is enabled, but cannot be used: {}; no tool is called without its rules: \
                     {way_out}",
                    error.message()
                );
                (Self::refuse_calls(name, &found.folder, why.clone()), Some(why))
            }
        }
    }

    /// Returns a plugin that denies every call, because of the record of an enabled plugin that cannot be
    /// read.
    fn refuse_for_record(record: &Path) -> Self {
        let name = record.file_stem().unwrap_or_default().to_string_lossy();
        let why = format!(
            "{} records an enabled plugin, but cannot be read; no tool is called without the rules of \
             that plugin: the user removes the file, and enables the plugin again",
            record.display()
        );
        Self::refuse_calls(&name, record, why)
    }

    /// Returns a plugin that denies every call because of `why`.
    pub(super) fn refuse_calls(name: &str, place: &Path, why: String) -> Self {
        Self {
            manifest: PluginManifest { name: name.to_owned(), ..Default::default() },
            place: place.to_owned(),
            root: place.to_owned(),
            hash: String::new(),
            project: None,
            refusal: Some(why),
        }
    }

    /// Adds rules, which hold for calls that passed the hooks before this plugin was loaded.
    pub(super) fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.manifest.rules.extend(rules);
        self
    }

    fn inner_folder(&self, folder: &str) -> PathBuf {
        self.root.join(folder)
    }

    /// Returns a server in the form of `.mcp.json`, with the folder of the plugin in its place.
    fn declare_server(&self, server: &ServerDeclaration) -> Value {
        let expand = |text: &String| expand_root(text, &self.root);
        let Some(command) = &server.command else {
            return json!({ "url": server.url, "headers": server.headers });
        };
        let own = ["CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT"].map(str::to_owned);
        let own = own.map(|name| (name, self.root.display().to_string()));
        let env = server.env.iter().map(|(name, value)| (name.clone(), expand(value)));
        let env: BTreeMap<String, String> = env.chain(own).collect();
        let args: Vec<String> = server.args.iter().map(expand).collect();
        json!({ "command": expand(command), "args": args, "env": env })
    }

    /// Returns the hooks of the manifest.
    fn build_hooks(&self, registrar: &PluginRegistrar) -> Option<ExternalHooks> {
        let config = self.manifest.hooks.as_ref()?;
        // The manifest was refused if a hook that decides cannot be understood.
        let (hooks, _) = ExternalHooks::from_value(config);
        let folder: &Path = self.project.as_deref().unwrap_or(&self.root);
        let hooks = hooks
            .in_folder(folder)
            .with_env(plugin_env(&self.root))
            .stopped_by(registrar.unload_token());
        (!hooks.is_empty()).then_some(hooks)
    }
}

impl Plugin for PackagePlugin {
    fn id(&self) -> &str {
        &self.manifest.name
    }

    fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
        registrar.set_place(self.place.display().to_string());
        registrar.add_rules(self.manifest.rules.iter().cloned())?;
        if let Some(why) = &self.refusal {
            let hook = LostPluginHook { why: why.clone() };
            registrar.add_hook("*", HookPriority::SECURITY, Arc::new(hook));
            return Ok(());
        }
        let processes = LineProcesses::default();
        for tool in &self.manifest.tools {
            registrar.add_tools(build_tool(tool, self.root.clone(), &self.hash, &processes)?);
        }
        if let Some(hooks) = self.build_hooks(registrar) {
            registrar.add_hook("*", HookPriority::DEFAULT, Arc::new(hooks));
        }
        for folder in &self.manifest.skill_folders {
            registrar.add_skill_folder(self.inner_folder(folder));
        }
        for folder in &self.manifest.agent_folders {
            registrar.add_agent_folder(self.inner_folder(folder));
        }
        for (name, server) in &self.manifest.servers {
            let name = format!("{}-{name}", self.manifest.name);
            registrar.add_mcp_server(name, self.declare_server(server));
        }
        registrar.on_unload("processes", move || async move { processes.shut_down().await });
        Ok(())
    }
}

/// Denies every call but those of `plugin_manager`, because the rules of a plugin are not known.
struct LostPluginHook {
    why: String,
}

impl Hook for LostPluginHook {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(match call.definition().name.as_str() {
            MANAGER_TOOL => HookDecision::none(),
            _ => HookDecision::deny(self.why.clone()),
        })
    }
}

/// Fails when a tool of the manifest cannot be built, so that loading the plugin cannot fail by itself.
pub(super) fn check_tools(manifest: &PluginManifest, root: &Path) -> Result<(), ToolError> {
    let processes = LineProcesses::default();
    let build = |tool| build_tool(tool, root.to_owned(), "", &processes).map(drop);
    manifest.tools.iter().try_for_each(build)
}
