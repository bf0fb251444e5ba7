//! The plugins of the program: those of the host, and those that a callback finds in folders.
//!
//! **Invariant:** a plugin that cannot be loaded is reported; the program goes on without its tools, but never
//! without its rules and hooks.

use std::path::PathBuf;
use std::sync::Arc;

use tool_sdk_core::{Plugin, PluginError, ProgramFolders, Toolset};
#[cfg(any(feature = "agent", feature = "mcp"))]
use tool_sdk_core::{PluginHost, PluginManager, PluginScope, Registry, Session};

#[cfg(feature = "mcp")]
use super::mcp::ServerEntry;
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
            let loaded = plugin.and_then(|plugin| load_or_restrict(&tools, &*plugin));
            if let Err(problem) = loaded {
                self.add_plugin_problem(problem);
            }
        }
        tools
    }

    /// Returns the plugins by themselves, beside no other tools.
    #[cfg(any(feature = "agent", feature = "mcp"))]
    pub(super) fn found_plugins(&self, settings: &Settings) -> Vec<Arc<PluginScope>> {
        match self.plugin_sources.0.is_empty() {
            true => Vec::new(),
            false => self.load_plugins(Toolset::new(Registry::default()), settings).plugins(),
        }
    }

    /// Adds the MCP servers of the plugins to those of the settings. Their processes run in the sandbox of
    /// commands.
    #[cfg(feature = "mcp")]
    pub(super) fn add_plugin_servers(&self, settings: &mut Settings) {
        for scope in self.found_plugins(settings) {
            for (name, server) in scope.mcp_servers() {
                let added = ServerEntry::for_plugin(name, server, &settings.sandbox)
                    .and_then(|entry| add_server(&mut settings.servers, entry));
                if let Err(why) = added {
                    let id = scope.id();
                    self.add_plugin_problem(format!(
                        "the MCP server `{name}` of the plugin `{id}` of {} is not used: {why}",
                        scope.place()
                    ));
                }
            }
        }
    }

    fn add_plugin_problem(&self, problem: String) {
        let mut problems = self.plugin_problems.borrow_mut();
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Warns about plugins that are not used, once.
    pub(super) fn warn_of_plugins(&self, io: &mut Io<'_>) {
        for problem in self.plugin_problems.borrow().iter().skip(self.warned_problems.get()) {
            io.print_stderr(style::sanitize_text(&format!("warning: {problem}")));
        }
        self.warned_problems.set(self.plugin_problems.borrow().len());
    }
}

/// Returns the session with the host of a part of its plugins.
#[cfg(any(feature = "agent", feature = "mcp"))]
pub(super) fn with_plugin_host(session: Session, host: impl PluginHost) -> Session {
    match session.service::<PluginManager>() {
        Some(plugins) => session.with_service(PluginManager::clone(&plugins).with_host(host)),
        None => session,
    }
}

/// Loads a plugin. Where that fails, its rules and hooks hold all the same; the error says so.
fn load_or_restrict(tools: &Toolset, plugin: &dyn Plugin) -> Result<(), String> {
    let Err(cause) = tools.load_plugin(plugin) else { return Ok(()) };
    tools.load_restrictions(plugin, &cause);
    Err(match cause {
        PluginError::Failed { .. } => {
            format!("{cause}; its rules are not known, so every call is denied")
        }
        _ => format!("{cause}; its rules and hooks hold all the same"),
    })
}

/// Adds a server, unless one of its name is configured.
#[cfg(feature = "mcp")]
fn add_server(servers: &mut Vec<ServerEntry>, entry: ServerEntry) -> Result<(), String> {
    if servers.iter().any(|known| known.has_name_of(&entry)) {
        return Err("a server of that name is in the configuration".to_owned());
    }
    servers.push(entry);
    Ok(())
}

#[cfg(all(test, feature = "agent", feature = "mcp"))]
mod tests {
    use std::fs;

    use serde_json::json;
    use tool_sdk_core::{PluginRegistrar, Rule, ToolError};

    use super::*;
    use crate::test_support::{TestCli, test_registry};

    /// A plugin that brings a rule, an agent and two servers.
    struct TestPlugin(PathBuf);

    impl Plugin for TestPlugin {
        fn id(&self) -> &str {
            "kit"
        }

        fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
            registrar.set_place("/plugins/kit");
            registrar.add_agent_folder(&self.0);
            registrar.add_mcp_server("kit-wiki", json!({ "command": "true", "args": ["x"] }));
            registrar.add_mcp_server("kit-odd", json!({ "command": "true", "shell": true }));
            let rule: Rule = "deny echo(text: secret)".parse().map_err(ToolError::config)?;
            registrar.add_rules([rule])
        }
    }

    /// A plugin that cannot register.
    struct BrokenPlugin;

    impl Plugin for BrokenPlugin {
        fn id(&self) -> &str {
            "broken"
        }

        fn register(&self, _registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
            Err(ToolError::config("no key is set"))
        }
    }

    // An error does not become an allow: without the rules of a plugin, nothing is called.
    #[test]
    fn a_plugin_that_fails_denies_every_call() {
        let cli = TestCli::default();
        let app = App::new(test_registry()).with_plugin(BrokenPlugin);
        let ran = cli.run_app(&app, &["--yes", "call", "echo", "--text", "x"]);
        assert_eq!(ran.code, 3, "{}", ran.err);
        assert!(ran.err.contains("`broken`") && ran.err.contains("no key is set"), "{}", ran.err);

        let two = [(); 2].map(|()| TestPlugin(cli.folder.path().join("none")));
        let app = two.into_iter().fold(App::new(test_registry()), App::with_plugin);
        let ran = cli.run_app(&app, &["--yes", "call", "echo", "--text", "free"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains("its rules and hooks hold all the same"), "{}", ran.err);
    }

    // F115: what a plugin brings is there for every command; what cannot be used is a warning.
    #[test]
    fn a_plugin_brings_rules_agents_and_servers() {
        let cli = TestCli::default();
        let folder = cli.folder.path().join("kit-agents");
        fs::create_dir(&folder).unwrap();
        for (name, text) in [("scout", "Scouts"), ("plan", "Another plan")] {
            let text = format!("---\nname: {name}\ndescription: {text}\n---\nLook.\n");
            fs::write(folder.join(format!("{name}.md")), text).unwrap();
        }
        let app = App::new(test_registry())
            .with_plugin(TestPlugin(folder))
            .with_plugin_source(|_, _| vec![Err("a plugin is broken".to_owned())]);
        let call = |text: &str| {
            let args = ["--yes", "call", "echo", "--text", text];
            cli.run_app(&app, &args)
        };
        let (free, denied) = (call("free"), call("secret"));
        assert_eq!((free.code, denied.code), (0, 3), "{} {}", free.err, denied.err);
        assert_eq!(free.err.matches("a plugin is broken").count(), 1, "{}", free.err);
        assert!(free.err.contains("`kit-odd` of the plugin `kit` of /plugins/kit"), "{}", free.err);

        let listed = cli.run_app(&app, &["agents", "list"]);
        assert!(listed.out.contains("scout    plugin    Scouts"), "{}", listed.out);
        assert!(!listed.out.contains("Another plan"), "{}", listed.out);
        assert!(listed.err.contains("plan.md has the name of"), "{}", listed.err);
        let servers = cli.run_app(&app, &["mcp", "list"]);
        assert!(servers.out.contains("kit-wiki"), "{} {}", servers.out, servers.err);
    }
}
