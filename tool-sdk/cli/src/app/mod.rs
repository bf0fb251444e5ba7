//! A program with tools: [`App`] holds the registry and the callbacks of the host.
//!
//! A host builds it from a registry, and adds session state and toolset configuration by
//! callbacks. [`run`] parses the command line and runs one command.

mod run;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use clap::ArgMatches;
#[cfg(feature = "agent")]
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{
    Hook, HookPriority, IntoTools, Pipeline, Registry, RegistryError, Session, Tool, Toolset,
};
#[cfg(feature = "mcp")]
use tool_sdk_mcp::Server;

#[cfg(feature = "agent")]
use super::chat::ConversationTask;
#[cfg(feature = "mcp")]
use super::mcp;
use super::plugins::PluginSources;
use super::settings::Settings;
use super::tool_commands::{ToolCommands, ToolSubcommand};
use super::{Io, exit};

/// Changes the toolset by the settings of tools on the web.
#[cfg(feature = "net")]
type WebToolsetSetup = Box<dyn Fn(Toolset, &tool_sdk_net::WebSettings) -> Toolset>;

/// Starts what the program runs beside a conversation.
#[cfg(feature = "agent")]
type ConversationTaskSetup =
    Box<dyn Fn(&Pipeline, &Session, &CancellationToken) -> Option<ConversationTask>>;

/// A program with tools, for hosts that give tools more than the workspace.
///
/// # Examples
///
/// ```no_run
/// use std::process::ExitCode;
/// use tool_sdk::cli::App;
///
/// struct Shelf(Vec<String>);
///
/// fn main() -> ExitCode {
///     App::linked().with_session(|session| session.with_service(Shelf(vec!["dictionary".to_owned()]))).main()
/// }
/// ```
pub struct App {
    pub(super) registry: Registry,
    /// Conflicts between linked tools, reported when the program runs.
    conflicts: Option<RegistryError>,
    /// Whether the tools are those that the linker kept.
    is_linked: bool,
    pub(super) version: Option<&'static str>,
    session_setup: Vec<Box<dyn Fn(Session) -> Session>>,
    toolset_setup: Vec<Box<dyn Fn(Toolset) -> Toolset>>,
    pipeline_setup: Vec<Box<dyn Fn(Pipeline) -> Pipeline>>,
    #[cfg(feature = "agent")]
    pub(super) agents: Vec<tool_sdk_agent::AgentDefinition>,
    #[cfg(feature = "agent")]
    pub(super) subagent_tools: Vec<Arc<dyn Tool>>,
    #[cfg(feature = "agent")]
    conversation_tasks: Vec<ConversationTaskSetup>,
    #[cfg(feature = "mcp")]
    server_setup: Vec<Box<dyn Fn(Server) -> Server>>,
    #[cfg(feature = "mcp")]
    pub(super) stdio_server_setup: mcp::ServerSetup,
    tool_commands: Vec<ToolCommands>,
    pub(super) plugin_sources: PluginSources,
    /// Why plugins are not used.
    pub(super) plugin_problems: RefCell<Vec<String>>,
    /// How many of these problems were printed.
    pub(super) warned_problems: Cell<usize>,
    #[cfg(feature = "net")]
    web_setup: Vec<WebToolsetSetup>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl App {
    /// Creates a program with these tools.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            conflicts: None,
            is_linked: false,
            version: None,
            session_setup: Vec::new(),
            toolset_setup: Vec::new(),
            pipeline_setup: Vec::new(),
            #[cfg(feature = "agent")]
            agents: Vec::new(),
            #[cfg(feature = "agent")]
            subagent_tools: Vec::new(),
            #[cfg(feature = "agent")]
            conversation_tasks: Vec::new(),
            #[cfg(feature = "mcp")]
            server_setup: Vec::new(),
            #[cfg(feature = "mcp")]
            stdio_server_setup: mcp::ServerSetup::default(),
            tool_commands: Vec::new(),
            plugin_sources: PluginSources::default(),
            plugin_problems: RefCell::default(),
            warned_problems: Cell::default(),
            #[cfg(feature = "net")]
            web_setup: Vec::new(),
        }
    }

    /// Creates a program with every tool that is linked into it.
    #[must_use]
    pub fn linked() -> Self {
        Self::linked_with(Vec::<Arc<dyn Tool>>::new())
    }

    /// Creates a program with every tool that is linked into it, and with `tools`, which are not
    /// registered by themselves because they need a service.
    #[must_use]
    pub fn linked_with(tools: impl IntoTools) -> Self {
        let app = match Registry::builder().add_linked().add(tools).build() {
            Ok(registry) => Self::new(registry),
            Err(conflicts) => Self { conflicts: Some(conflicts), ..Self::new(Registry::default()) },
        };
        Self { is_linked: true, ..app }
    }

    /// Sets the version that `--version` prints and that servers announce, usually
    /// `env!("CARGO_PKG_VERSION")`. Without one the option does not exist, and servers announce
    /// `0.0.0`.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = Some(version);
        self
    }

    /// Adds a callback that changes the session of every call, for example to insert a service.
    #[must_use]
    pub fn with_session(mut self, lend: impl Fn(Session) -> Session + 'static) -> Self {
        self.session_setup.push(Box::new(lend));
        self
    }

    /// Adds a callback that changes the toolset: model profiles, agents, variants.
    #[must_use]
    pub fn with_toolset(mut self, shape: impl Fn(Toolset) -> Toolset + 'static) -> Self {
        self.toolset_setup.push(Box::new(shape));
        self
    }

    /// Adds a callback that changes the toolset by the user's settings for tools on the web, such as
    /// one that leaves out what is not configured.
    #[cfg(feature = "net")]
    #[must_use]
    pub fn with_web_toolset(
        mut self,
        shape: impl Fn(Toolset, &tool_sdk_net::WebSettings) -> Toolset + 'static,
    ) -> Self {
        self.web_setup.push(Box::new(shape));
        self
    }

    /// Adds a hook for the tools whose names match `pattern`, for every call of the program: `call`,
    /// `batch` and the servers.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use tool_sdk::cli::App;
    /// use tool_sdk::{Hook, HookContext, HookPriority, Outcome};
    ///
    /// /// Counts calls.
    /// struct CallCounter;
    ///
    /// impl Hook for CallCounter {
    ///     fn observe(&self, call: &HookContext<'_>, outcome: &Outcome) {
    ///         eprintln!("{}: {}", call.definition().name, outcome.result.is_ok());
    ///     }
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     App::linked().with_hook("*", HookPriority::LOGGING, CallCounter).main()
    /// }
    /// ```
    #[must_use]
    pub fn with_hook(
        self,
        pattern: impl Into<String>,
        priority: HookPriority,
        hook: impl Hook,
    ) -> Self {
        let (pattern, hook) = (pattern.into(), Arc::new(hook));
        self.with_pipeline(move |pipeline| {
            pipeline.shared_hook(pattern.clone(), priority, Arc::clone(&hook))
        })
    }

    /// Adds a callback that changes the pipeline of every command that makes calls, before the
    /// settings of the user are applied.
    #[must_use]
    pub fn with_pipeline(mut self, configure: impl Fn(Pipeline) -> Pipeline + 'static) -> Self {
        self.pipeline_setup.push(Box::new(configure));
        self
    }

    /// Adds an agent, for `--agent` of every command, for `chat`, and for other agents.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use tool_sdk::agent::AgentDefinition;
    /// use tool_sdk::{AgentProfile, cli::App};
    ///
    /// fn main() -> ExitCode {
    ///     let profile = AgentProfile::new("librarian").only(["category:books"]);
    ///     App::linked().with_agent(AgentDefinition::new(profile, "Finds and lends books")).main()
    /// }
    /// ```
    #[cfg(feature = "agent")]
    #[must_use]
    pub fn with_agent(mut self, agent: tool_sdk_agent::AgentDefinition) -> Self {
        self.agents.push(agent);
        self
    }

    /// Adds tools that start agents with a [`SubagentService`](tool_sdk_agent::SubagentService): they
    /// exist where agents can be started, in `chat`, `serve acp` and the servers with `--agents`.
    #[cfg(feature = "agent")]
    #[must_use]
    pub fn with_subagent_tools(mut self, tools: impl IntoTools) -> Self {
        self.subagent_tools.extend(tools.into_tools());
        self
    }

    /// Adds a task that runs beside each conversation of `chat` and `serve acp`, such as one that reads
    /// the events of its calls. The callback gets the pipeline and the session of the conversation,
    /// which has a [`SteeringQueue`](tool_sdk_agent::SteeringQueue) and
    /// [`PromptSections`](tool_sdk_agent::PromptSections) as services, and a token that is cancelled
    /// when the conversation ends. The task starts with the first prompt.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use tool_sdk::cli::{App, ConversationTask};
    ///
    /// fn main() -> ExitCode {
    ///     App::linked()
    ///         .with_conversation_task(|pipeline, _, ending| {
    ///             let (mut events, ending) = (pipeline.subscribe(), ending.clone());
    ///             Some(ConversationTask::new(async move {
    ///                 let mut calls = 0;
    ///                 loop {
    ///                     tokio::select! {
    ///                         Some(event) = events.recv() => calls += u32::from(event.kind.is_terminal()),
    ///                         () = ending.cancelled() => return vec![format!("{calls} calls")],
    ///                     }
    ///                 }
    ///             }))
    ///         })
    ///         .main()
    /// }
    /// ```
    #[cfg(feature = "agent")]
    #[must_use]
    pub fn with_conversation_task(
        mut self,
        start: impl Fn(&Pipeline, &Session, &CancellationToken) -> Option<ConversationTask> + 'static,
    ) -> Self {
        self.conversation_tasks.push(Box::new(start));
        self
    }

    /// Returns the tasks of a new conversation.
    #[cfg(feature = "agent")]
    pub(super) fn conversation_tasks(
        &self,
        pipeline: &Pipeline,
        session: &Session,
        ending: &CancellationToken,
    ) -> Vec<ConversationTask> {
        let start = |start: &ConversationTaskSetup| start(pipeline, session, ending);
        self.conversation_tasks.iter().filter_map(start).collect()
    }

    /// Adds a callback that changes the MCP server of `serve mcp` and `serve http`: its title, icons,
    /// website, resources, prompts, pages.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use tool_sdk::cli::App;
    ///
    /// fn main() -> ExitCode {
    ///     App::linked()
    ///         .version(env!("CARGO_PKG_VERSION"))
    ///         .with_mcp_server(|server| server.with_title("Shelf").with_website("https://example.com"))
    ///         .main()
    /// }
    /// ```
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn with_mcp_server(mut self, configure: impl Fn(Server) -> Server + 'static) -> Self {
        self.server_setup.push(Box::new(configure));
        self
    }

    /// Adds a callback that changes the MCP server of `serve mcp` on standard input and output, for
    /// example to serve prompts and resources. It gets the pipeline and the session of the server.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn with_stdio_server(
        mut self,
        configure: impl Fn(Server, &Pipeline, &Session) -> Server + 'static,
    ) -> Self {
        self.stdio_server_setup.add(configure);
        self
    }

    /// Adds a command whose subcommands call tools: `(subcommand, tool)`, or with what it does as a
    /// third. A word behind the subcommand is the main parameter of the tool, else all is as for `call`.
    /// Flags may stand behind the name of the tool; where the last one has no value, it is that word.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use tool_sdk::cli::App;
    ///
    /// fn main() -> ExitCode {
    ///     // `pages add index` is `call page_add --name index`.
    ///     let tools = [("add", "page_add"), ("list", "page_list")];
    ///     App::linked().with_tool_commands("pages", "Add and list pages", tools).main()
    /// }
    /// ```
    #[must_use]
    pub fn with_tool_commands(
        mut self,
        name: &'static str,
        about: &'static str,
        tools: impl IntoIterator<Item = impl Into<ToolSubcommand>>,
    ) -> Self {
        self.tool_commands.push(ToolCommands::new(name, about, tools));
        self
    }

    /// Loads the settings, with the MCP servers of plugins.
    pub(super) fn load_settings(
        &self,
        levels: &[&ArgMatches],
        io: &Io<'_>,
    ) -> exit::Result<Settings> {
        #[cfg_attr(not(feature = "mcp"), expect(unused_mut, reason = "there are no servers"))]
        let mut settings = Settings::load(levels, io)?;
        #[cfg(feature = "mcp")]
        self.add_plugin_servers(&mut settings);
        Ok(settings)
    }

    /// Returns the program's toolset with the agents, rules, mode and variants of the settings.
    pub(super) fn build_toolset(&self, settings: &Settings) -> exit::Result<Toolset> {
        self.configure_toolset(self.base_toolset(), settings)
    }

    /// Returns `tools` with the agents, rules, mode and variants of the settings, and with the agents
    /// of files.
    pub(super) fn configure_toolset(
        &self,
        tools: Toolset,
        settings: &Settings,
    ) -> exit::Result<Toolset> {
        let tools = self.load_plugins(settings.configure_toolset(tools)?, settings);
        #[cfg(feature = "net")]
        let tools = self.web_setup.iter().fold(tools, |tools, shape| shape(tools, &settings.web));
        #[cfg(feature = "agent")]
        let tools =
            self.agent_catalog(settings).add_to(tools).map_err(exit::CommandError::config)?;
        Ok(tools)
    }

    /// Returns the toolset after the program's callbacks, without any settings.
    pub(super) fn base_toolset(&self) -> Toolset {
        let tools = Toolset::new(self.registry.clone());
        self.toolset_setup.iter().fold(tools, |tools, shape| shape(tools))
    }

    /// Applies the program's pipeline callbacks.
    pub(super) fn prepare_pipeline(&self, pipeline: Pipeline) -> Pipeline {
        self.pipeline_setup.iter().fold(pipeline, |pipeline, configure| configure(pipeline))
    }

    /// Returns the version that servers announce.
    #[cfg(feature = "mcp")]
    pub(super) fn announced_version(&self) -> &'static str {
        self.version.unwrap_or("0.0.0")
    }

    /// Applies the program's server callbacks.
    #[cfg(feature = "mcp")]
    pub(super) fn prepare_server(&self, server: Server) -> Server {
        self.server_setup.iter().fold(server, |server, configure| configure(server))
    }

    /// Applies the program's session callbacks.
    pub(super) fn prepare_session(&self, session: Session) -> Session {
        self.session_setup.iter().fold(session, |session, lend| lend(session))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::{Value, json};
    use tool_sdk_core::{
        Context, DynamicTool, FromContext as _, State, ToolSettings, VariantGroup,
    };

    use super::*;
    use crate::test_support;

    /// A tool that returns a session extension and a setting.
    fn session_state_registry() -> Registry {
        let tool = DynamicTool::new(
            test_support::make_definition("tell", json!({})),
            |_: Value, cx: Context| async move {
                let word = State::<String>::from_context(&cx)?;
                let safe = ToolSettings::from_session(cx.session()).safe_commands;
                Ok::<_, tool_sdk_core::ToolError>(format!("{} {safe}", *word))
            },
        );
        Registry::builder().add(tool).build().unwrap()
    }

    fn call_tell(app: &App, options: &[&str]) -> (u8, String) {
        let (mut stdin, mut out, mut err) = (io::empty(), Vec::new(), Vec::new());
        let mut io = Io::new(&mut stdin, &mut out, &mut err);
        let args = [&["toy", "call", "tell", "--yes"], options].concat();
        let code = app.run(args.into_iter().map(Into::into), &mut io);
        (code, String::from_utf8(out).unwrap())
    }

    #[test]
    fn prints_the_version_if_there_is_one() {
        let setting = test_support::TestCli::default();
        let args = ["--version"];
        let ran = setting.run_app(&App::new(test_support::test_registry()).version("1.2.3"), &args);
        assert_eq!((ran.code, ran.out.as_str()), (0, "toy 1.2.3\n"));
        let ran = setting.run_app(&App::new(test_support::test_registry()), &args);
        assert_eq!(ran.code, 2, "{}", ran.out);
    }

    #[test]
    fn tools_get_what_the_program_and_its_user_set() {
        let app = App::new(session_state_registry())
            .with_session(|session| session.with_service("hello".to_owned()));
        for (options, safe) in
            [(&[][..], true), (&["--safe-commands"], true), (&["--no-safe-commands"], false)]
        {
            assert_eq!(call_tell(&app, options), (0, format!("hello {safe}\n")), "{options:?}");
        }
        assert_eq!(call_tell(&App::new(session_state_registry()), &[]).0, 1);
    }

    // F36: hooks of the program see every call, also those that do not run.
    #[test]
    fn hooks_of_the_program_see_every_outcome() {
        #[derive(Clone, Default)]
        struct OutcomeCounter(Arc<std::sync::Mutex<Vec<bool>>>);
        impl Hook for OutcomeCounter {
            fn observe(
                &self,
                _: &tool_sdk_core::HookContext<'_>,
                outcome: &tool_sdk_core::Outcome,
            ) {
                self.0.lock().unwrap().push(outcome.result.is_ok());
            }
        }
        let seen = OutcomeCounter::default();
        let app = App::new(session_state_registry())
            .with_session(|session| session.with_service("hello".to_owned()))
            .with_hook("*", HookPriority::LOGGING, seen.clone());
        assert_eq!(call_tell(&app, &[]).0, 0);
        assert_eq!(call_tell(&app, &["--deny", "tell"]).0, 3);
        assert_eq!(*seen.0.lock().unwrap(), [true, false]);
    }

    #[test]
    fn a_missing_session_extension_is_reported_by_its_type() {
        let ran = test_support::TestCli::default()
            .run_app(&App::new(session_state_registry()), &["--yes", "call", "tell"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert!(ran.err.contains("no service `alloc::string::String`"), "{}", ran.err);
    }

    // A tool that `list --scope` shows is not reported as unknown.
    #[test]
    fn explains_why_a_tool_is_not_available() {
        let tool = |name: &'static str, change: fn(&mut tool_sdk_core::Definition)| {
            let mut definition = test_support::make_definition(name, json!({}));
            change(&mut definition);
            DynamicTool::new(definition, |_: Value, _: Context| async { "" })
        };
        let registry = Registry::builder()
            .add(tool("vault", |it| it.scopes = vec!["keeper".into()]))
            .add(tool("draft", |it| it.flags.experimental = true))
            .build()
            .unwrap();
        for (name, hint) in [
            ("vault", "it requires the scope `keeper`"),
            ("draft", "`TOOL_SDK_EXPERIMENTAL=draft`"),
        ] {
            for verb in ["call", "check"] {
                let ran = test_support::TestCli::default()
                    .run_app(&App::new(registry.clone()), &[verb, name]);
                assert_eq!(ran.code, 2);
                assert!(
                    ran.err.contains(&format!("there is no tool `{name}` for this")),
                    "{}",
                    ran.err
                );
                assert!(ran.err.contains(hint), "{}", ran.err);
            }
        }
    }

    // F108: options after the tool's name select variants, too.
    #[test]
    fn only_the_selected_variant_can_be_called() {
        let voices = VariantGroup::new("voice").variant("loud", ["echo"]).variant("low", ["kinds"]);
        let app = App::new(test_support::test_registry())
            .with_toolset(move |it| it.with_variants(voices.clone()));
        let setting = test_support::TestCli::default();
        let low = setting.write_text("low.toml", "[variants]\nvoice = \"low\"\n");
        for (args, code) in [
            (&["check", "echo", "--text", "x"][..], 0),
            (&["check", "kinds"], 2),
            (&["--config", &low, "check", "kinds"], 0),
            (&["check", "kinds", "--config", &low], 0),
            (&["call", "kinds", "--yes", "--config", &low], 0),
            (&["call", "echo", "--text", "x", "--config", &low], 2),
        ] {
            let ran = setting.run_app(&app, args);
            assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
            assert_eq!(ran.err.contains("there is no tool"), code == 2, "{args:?}: {}", ran.err);
        }
    }
}
