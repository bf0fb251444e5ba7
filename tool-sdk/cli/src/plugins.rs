//! The plugins of the program: those of the host, and those that a callback finds in folders.
//!
//! **Invariant:** a plugin that cannot be loaded is reported and skipped; the program goes on without it.

use std::path::PathBuf;
use std::sync::Arc;

use tool_sdk_core::{Plugin, ProgramFolders, Toolset};

use super::settings::Settings;
use super::{App, Io, style};

/// Finds plugins in the folders of the user and the program, and in the roots of the workspace. What
/// cannot be used is a text that says why.
type PluginSource =
    Box<dyn Fn(&ProgramFolders, &[PathBuf]) -> Vec<Result<Arc<dyn Plugin>, String>>>;

/// Where the plugins of the program come from.
#[derive(Default)]
pub(super) struct PluginSources(Vec<PluginSource>);

impl App {
    /// Adds a plugin: its tools, hooks and rules are those of every command.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use tool_sdk::{Plugin, PluginRegistrar, Rule, ToolError, cli::App};
    ///
    /// /// Asks before anything is deleted.
    /// struct CarefulPlugin;
    ///
    /// impl Plugin for CarefulPlugin {
    ///     fn id(&self) -> &str {
    ///         "careful"
    ///     }
    ///
    ///     fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
    ///         registrar.add_rules(["ask delete_*".parse::<Rule>().map_err(ToolError::config)?])
    ///     }
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     App::linked().with_plugin(CarefulPlugin).main()
    /// }
    /// ```
    #[must_use]
    pub fn with_plugin(self, plugin: impl Plugin) -> Self {
        let plugin: Arc<dyn Plugin> = Arc::new(plugin);
        self.with_plugin_source(move |_, _| vec![Ok(Arc::clone(&plugin))])
    }

    /// Adds a callback that finds plugins in the folders of the user and the program, and in the roots of
    /// the workspace. Of what cannot be used it returns the reason, which is printed as a warning.
    #[must_use]
    pub fn with_plugin_source(
        mut self,
        find: impl Fn(&ProgramFolders, &[PathBuf]) -> Vec<Result<Arc<dyn Plugin>, String>> + 'static,
    ) -> Self {
        self.plugin_sources.0.push(Box::new(find));
        self
    }

    /// Returns `tools` with those of the plugins.
    pub(super) fn load_plugins(&self, tools: Toolset, settings: &Settings) -> Toolset {
        let mut folders = ProgramFolders::default();
        folders.state.clone_from(&settings.state_dir);
        folders.home.clone_from(&settings.home_dir);
        let found = self.plugin_sources.0.iter().flat_map(|find| find(&folders, &settings.roots));
        for plugin in found {
            let loaded = plugin.and_then(|plugin| {
                tools.load_plugin(&*plugin).map(drop).map_err(|error| error.to_string())
            });
            if let Err(problem) = loaded {
                let mut problems = self.plugin_problems.borrow_mut();
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        tools
    }

    /// Warns about plugins that are not used, once.
    pub(super) fn warn_of_plugins(&self, io: &mut Io<'_>) {
        for problem in self.plugin_problems.borrow().iter().skip(self.warned_problems.get()) {
            io.print_stderr(style::sanitize_text(&format!("warning: {problem}")));
        }
        self.warned_problems.set(self.plugin_problems.borrow().len());
    }
}
