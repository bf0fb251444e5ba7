//! A plugin in a folder, as the toolset loads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::{ExternalHooks, HookPriority, Plugin, PluginRegistrar, ProgramFolders, ToolError};

use super::command_tool::{build_tool, expand_root, plugin_env};
use super::library::{FoundPlugin, PluginPlaces, PluginStatus, read_package};
use super::line_process::LineProcesses;
use super::manifest::{PluginManifest, ServerDeclaration};

/// A plugin in a folder whose files are those that the user approved.
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
}

/// The enabled plugins of a user and a project, and why others are not used.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct EnabledPlugins {
    /// The plugins, in the order in which they are loaded.
    pub plugins: Vec<PackagePlugin>,
    /// Why others are not used, one line each.
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
            match plugin.status {
                PluginStatus::Disabled => {}
                PluginStatus::Changed => {
                    let (name, folder) = (&plugin.manifest.name, plugin.folder.display());
                    found.problems.push(format!(
                        "the plugin `{name}` of {folder} is {}; enable it again, which shows what it is \
                         now",
                        plugin.status.as_str()
                    ));
                }
                PluginStatus::Enabled => match PackagePlugin::open(plugin, &places) {
                    Ok(plugin) => found.plugins.push(plugin),
                    Err(error) => found.problems.push(error.message().to_owned()),
                },
            }
        }
        found
    }
}

impl PackagePlugin {
    /// Opens an enabled plugin, where it runs.
    pub(super) fn open(found: &FoundPlugin, places: &PluginPlaces) -> Result<Self, ToolError> {
        let name = &found.manifest.name;
        let root = places.run_folder(found.origin, &found.folder)?;
        let package = read_package(&root)?;
        if package.content_hash() != found.hash {
            let text =
                format_args!("the plugin `{name}` does not run from the files that were enabled");
            return Err(ToolError::conflict(text).hint("enable it again"));
        }
        Ok(Self {
            manifest: PluginManifest::read(&package)?,
            place: found.folder.clone(),
            root,
            hash: found.hash.clone(),
            project: places.roots.first().cloned(),
        })
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
        let processes = LineProcesses::default();
        for tool in &self.manifest.tools {
            registrar.add_tools(build_tool(tool, self.root.clone(), &self.hash, &processes)?);
        }
        registrar.add_rules(self.manifest.rules.iter().cloned())?;
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
