//! The MCP servers of plugins that are loaded and unloaded while the program runs.
//!
//! **Invariant:** a server of the configuration is never removed with a plugin, also when it has the name
//! of one of the plugin's.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::runtime::Handle;
use tool_sdk_core::{PluginHost, PluginPart, PluginScope};
use tool_sdk_mcp::{RemoteError, ServerManager, ServerStatus};
use tool_sdk_process::sandbox::SandboxPolicy;

use super::server_entry::ServerEntry;
use super::server_folders::ServerFolders;
use crate::settings::Settings;

/// Connects to the MCP servers of plugins.
#[derive(Clone)]
pub(super) struct PluginServerHost {
    manager: ServerManager,
    /// The runtime of the connections, where the program has one for them.
    runtime: Option<Handle>,
    /// The sandbox of commands.
    sandbox: SandboxPolicy,
    folders: Arc<ServerFolders>,
    /// The names of the servers of loaded plugins.
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl PluginServerHost {
    /// Returns the host for a manager that has the servers of `settings`.
    pub(super) fn new(manager: ServerManager, settings: &Settings) -> Self {
        let of_plugins = settings.servers.iter().filter(|entry| entry.is_of_plugin());
        Self {
            manager,
            runtime: None,
            sandbox: settings.sandbox.clone(),
            folders: Arc::new(ServerFolders::resolve_sandboxed(settings)),
            names: Arc::new(Mutex::new(of_plugins.map(|entry| entry.name.clone()).collect())),
        }
    }

    /// Sets the runtime of the connections.
    pub(super) fn set_runtime(&mut self, runtime: Option<Handle>) {
        self.runtime = runtime;
    }

    /// Adds a server, and connects to it.
    async fn add_server(&self, name: &str, server: &Value) -> Result<ServerStatus, String> {
        let entry = ServerEntry::for_plugin(name, server, &self.sandbox)?;
        let config = entry.to_plugin_config(&self.folders)?;
        self.manager.add(config).map_err(|error| error.to_string())?;
        self.names().insert(name.to_owned());
        self.connect(name.to_owned()).await.map_err(|error| error.to_string())
    }

    async fn connect(&self, name: String) -> Result<ServerStatus, RemoteError> {
        let Some(runtime) = &self.runtime else { return self.manager.connect(&name).await };
        let manager = self.manager.clone();
        let connecting = runtime.spawn(async move { manager.connect(&name).await });
        let ended = |_| RemoteError::connection("the connections are closed");
        connecting.await.map_err(ended).flatten()
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginHost for PluginServerHost {
    fn part(&self) -> PluginPart {
        PluginPart::McpServers
    }

    async fn attach(&self, scope: &PluginScope) -> Vec<String> {
        let mut notes = Vec::new();
        for (name, server) in scope.mcp_servers() {
            notes.push(match self.add_server(name, server).await {
                Ok(status) => match status.tools.len() {
                    1 => format!("Its MCP server `{name}` is connected, with one tool"),
                    tools => format!("Its MCP server `{name}` is connected, with {tools} tools"),
                },
                Err(why) => format!("Its MCP server `{name}` is not connected: {why}"),
            });
        }
        notes
    }

    async fn detach(&self, scope: &PluginScope) -> Vec<String> {
        for (name, _) in scope.mcp_servers() {
            if self.names().remove(name) {
                self.manager.remove(name);
            }
        }
        Vec::new()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use serde_json::json;
    use tool_sdk_core::{
        Context, DynamicTool, Plugin, PluginManager, PluginRegistrar, Registry, ToolError,
    };

    use super::*;
    use crate::App;
    use crate::mcp::tests::greeting_server;
    use crate::test_support::{TestCli, make_definition};

    /// A plugin with a server that works, one that does not start, and one that needs a variable.
    struct ServerPlugin;

    impl Plugin for ServerPlugin {
        fn id(&self) -> &str {
            "kit"
        }

        fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
            let server = json!({ "command": "sh", "args": ["-c", greeting_server()] });
            registrar.add_mcp_server("kit-hello", server);
            registrar.add_mcp_server("kit-gone", json!({ "command": "false" }));
            let server = json!({ "command": "true", "args": ["${KIT_TOKEN}"] });
            registrar.add_mcp_server("kit-token", server);
            registrar.add_mcp_server("mine", json!({ "command": "true" }));
            Ok(())
        }
    }

    async fn load_and_unload(cx: Context) -> Result<String, ToolError> {
        let plugins = cx.session().service::<PluginManager>().expect("the program has one");
        let servers = cx.state::<ServerManager>()?;
        let scope = plugins.load(&ServerPlugin).map_err(ToolError::config)?;
        let mut lines = plugins.attach_parts(&scope).await;
        let names = || {
            let statuses = servers.statuses();
            let names: Vec<String> = statuses.into_iter().map(|status| status.name).collect();
            names.join(", ")
        };
        lines.push(format!("loaded: {}", names()));
        drop(scope);
        plugins.unload("kit").await?;
        lines.push(format!("unloaded: {}", names()));
        Ok(lines.join("\n"))
    }

    // The servers of a plugin come and go with it, while the program runs; those of the user stay.
    #[test]
    fn servers_of_a_plugin_come_at_once_and_go_with_it() {
        let cli = TestCli::default();
        let config = "[mcp.servers.mine]\ncommand = \"true\"\n";
        let config = cli.write_text("config.toml", config);
        let tool = DynamicTool::new(make_definition("load", json!({})), |_: Value, cx: Context| {
            load_and_unload(cx)
        });
        let app = App::new(Registry::builder().add(tool).build().expect("the name is free"));
        let ran =
            cli.run_app(&app, &["--config", &config, "--sandbox", "off", "--yes", "call", "load"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines[0], "Its MCP server `kit-hello` is connected, with one tool");
        assert!(lines[1].starts_with("Its MCP server `kit-gone` is not connected: "), "{lines:?}");
        assert!(lines[2].contains("needs the environment variable `KIT_TOKEN`"), "{lines:?}");
        assert!(lines[3].starts_with("Its MCP server `mine` is not connected: "), "{lines:?}");
        assert_eq!(lines[4], "loaded: kit-gone, kit-hello, mine");
        assert_eq!(lines[5], "unloaded: mine");
    }
}
