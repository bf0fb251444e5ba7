//! The settings of one command: the command line overrides the environment, which overrides the
//! configuration file.
//!
//! | | options | environment | file |
//! |---|---|---|---|
//! | rules, the last match decides | session scope | user scope, after the file | user scope |
//! | everything else: precedence | first | second | last |
//!
//! [`Settings::load`] runs once per command. The commands and everything below them take
//! `&Settings`; they read neither the file nor the variables and options that it has.
//!
//! **Invariant:** a setting that cannot be parsed ends the command; no rule is ever skipped.

mod file;
mod limits;
mod paths;
mod rules;
mod sources;
#[cfg(feature = "net")]
mod web;
#[cfg(not(feature = "net"))]
#[path = "web_disabled.rs"]
mod web;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ArgMatches;
use tool_sdk_core::{AgentProfile, Definition, Mode, RiskClass, Rule, ToolSettings, Toolset};
use tool_sdk_process::sandbox::{SandboxLevel, SandboxPolicy};
use tool_sdk_workspace::Workspace;

#[cfg(all(test, feature = "mcp"))]
pub(super) use self::file::ConfigErrors;
use self::file::ConfigFile;
pub(super) use self::file::{HooksConfig, TomlValue};
#[cfg(feature = "store")]
pub(super) use self::limits::WrittenDuration;
pub(super) use self::limits::{CallLimits, limit_options};
use self::sources::SettingSources;
pub(super) use self::web::web_options;
use super::exit::{CommandError, Result};
use super::secrets::SecretsCommand;
use super::{Io, args, chat, mcp, serve, workers};

/// The resolved settings of one command.
#[derive(Debug)]
pub(super) struct Settings {
    /// The roots of the workspace; there is at least one.
    pub(super) roots: Vec<PathBuf>,
    /// Whether options or environment name the roots.
    pub(super) are_roots_named: bool,
    pub(super) workspace: Workspace,
    /// The configuration file, whether or not it exists.
    pub(super) config_path: Option<PathBuf>,
    /// The folder for approvals, pins and long outputs; `None` if the user has no home folder.
    pub(super) state_dir: Option<PathBuf>,
    pub(super) rules: Vec<Rule>,
    pub(super) mode: Mode,
    pub(super) prompt_mode: PromptMode,
    /// Whether more is printed on standard error.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have more to say"))]
    pub(super) is_verbose: bool,
    pub(super) session_settings: ToolSettings,
    pub(super) agents: Vec<AgentProfile>,
    /// The home folder of the user, where agents are.
    pub(super) home_dir: Option<PathBuf>,
    /// The model for which calls are made.
    pub(super) model: Option<String>,
    /// The agent for which calls are made.
    pub(super) agent: Option<String>,
    /// The selected variant of each group of tools.
    pub(super) variants: BTreeMap<String, String>,
    /// Patterns of the experimental tools that are enabled.
    pub(super) experimental: Vec<String>,
    /// Categories and name patterns of the tools that are left out.
    pub(super) disable: Vec<String>,
    /// The command that prints secrets.
    pub(super) secrets_command: Option<SecretsCommand>,
    /// The only folders in which tools may write.
    pub(super) writable: Option<Vec<PathBuf>>,
    /// The commands run in the first root, where relative paths in arguments start.
    pub(super) hooks: Option<HooksConfig>,
    pub(super) limits: CallLimits,
    /// The path of the audit log.
    pub(super) audit: Option<PathBuf>,
    /// Whether the calls of sessions are recorded in the state folder.
    pub(super) record_sessions: bool,
    /// The sandbox for commands.
    pub(super) sandbox: SandboxPolicy,
    /// The settings of tools on the web.
    #[cfg(feature = "net")]
    pub(super) web: tool_sdk_net::WebSettings,
    /// The configured MCP servers.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "there is no MCP client"))]
    pub(super) servers: mcp::ServerEntries,
    /// The configured remote workers.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "there are no workers"))]
    pub(super) workers: workers::WorkerEntries,
    /// The settings of `chat`.
    #[cfg_attr(not(feature = "agent"), expect(dead_code, reason = "there is no chat"))]
    pub(super) chat: chat::ChatConfig,
    /// Whether tools may read the folders that an MCP client says it works in.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    pub(super) roots_from_client: bool,
    /// Whether the tools that start agents are served.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    pub(super) serves_agents: bool,
    /// The settings of `serve`.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    pub(super) serve: serve::ServeConfig,
}

/// How a call that needs approval is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptMode {
    /// The user is prompted at the terminal.
    Terminal,
    /// Every call is approved once (`--yes`).
    AssumeYes,
    /// Every call that needs approval is denied (`--no-input`).
    NoInput,
}

impl Settings {
    /// Resolves the settings. `levels` are the parsed options from left to right.
    ///
    /// Opens the roots, so that every command rejects invalid options, even those that it does not
    /// use.
    pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        let named_roots = paths::named_roots(SettingSources { levels, io });
        let are_roots_named = !named_roots.is_empty();
        let roots = if are_roots_named { named_roots } else { vec![io.current_dir.clone()] };
        Self::load_with_roots(levels, roots, are_roots_named, io)
    }

    /// Resolves the settings of a session that a client opens in the folder `root`. Where options
    /// or environment name roots, the folder must be inside one of them.
    #[cfg(feature = "acp")]
    pub(super) fn load_for_folder(
        levels: &[&ArgMatches],
        root: PathBuf,
        program: &str,
        io: &Io<'_>,
    ) -> Result<Self> {
        let named = paths::named_roots(SettingSources { levels, io });
        let real = root.canonicalize();
        let is_inside = |named: &PathBuf| {
            real.as_ref()
                .ok()
                .zip(named.canonicalize().ok())
                .is_some_and(|(real, named)| real.starts_with(named))
        };
        if !named.is_empty() && !named.iter().any(is_inside) {
            let shown = root.display();
            return Err(CommandError::config(format_args!(
                "`{shown}` is outside of the folders that `--root` and TOOL_SDK_ROOT name"
            ))
            .hint("open a folder inside of them"));
        }
        let settings = Self::load_with_roots(levels, vec![root], !named.is_empty(), io)?;
        settings.check_broad_session_folder(program, io)?;
        Ok(settings)
    }

    fn load_with_roots(
        levels: &[&ArgMatches],
        roots: Vec<PathBuf>,
        are_roots_named: bool,
        io: &Io<'_>,
    ) -> Result<Self> {
        let from = SettingSources { levels, io };
        let workspace = paths::open_workspace(&roots)?;
        let named_config = from.named_path(args::CONFIG, "TOOL_SDK_CONFIG");
        let config_path = named_config.clone().or_else(|| paths::default_config(io));
        let config = file::load(config_path.as_deref(), named_config.is_some())?;

        let mode = from.option_or_variable(args::MODE, "TOOL_SDK_MODE")?;
        let mode = mode.or(config.mode).unwrap_or_default();
        let sandbox = resolve_sandbox(&config, mode, from)?;
        let rules = rules::append_rules(config.rules, from)?;
        let prompt_mode = resolve_prompt_mode(from)?;
        let is_verbose =
            from.switch_or_variable(args::VERBOSE, "TOOL_SDK_VERBOSE")?.unwrap_or(false);
        if let Some(start_logs) = io.log_setup.filter(|_| is_verbose) {
            start_logs();
        }
        let safe_commands = resolve_safe_commands(config.safe_commands, from)?;
        let limits = limits::resolve_limits(&config.limits, from)?;
        let mut session_settings = ToolSettings::default();
        session_settings.safe_commands = safe_commands.unwrap_or(session_settings.safe_commands);
        session_settings.capture_bytes =
            limits.capture_bytes.unwrap_or(session_settings.capture_bytes);
        let variants = from.variants()?.unwrap_or(config.variants);
        let experimental = from.list("TOOL_SDK_EXPERIMENTAL")?.unwrap_or(config.experimental);
        let disable = from.repeated(args::DISABLE, "TOOL_SDK_DISABLE")?.unwrap_or(config.disable);
        let secrets_command =
            from.option_or_variable(args::SECRETS_COMMAND, "TOOL_SDK_SECRETS_COMMAND")?;
        let writable = from.paths("TOOL_SDK_WRITABLE")?.or(config.writable);
        let writable: Option<Vec<_>> =
            writable.map(|folders| folders.iter().map(|it| io.resolve_path(it)).collect());
        let audit = from.path("TOOL_SDK_AUDIT")?.or(config.audit);
        let record_sessions =
            from.switch_or_variable(args::RECORD_SESSIONS, "TOOL_SDK_RECORD_SESSIONS")?;
        let record_sessions = record_sessions.or(config.record_sessions);
        let durability = from.variable("TOOL_SDK_DURABLE")?.or(config.durable);
        let roots_from_client =
            from.switch_or_variable(args::ROOTS_FROM_CLIENT, "TOOL_SDK_ROOTS_FROM_CLIENT")?;
        let serves_agents = from.switch_or_variable(args::AGENTS, "TOOL_SDK_SERVE_AGENTS")?;
        let one_device = from.switch("TOOL_SDK_ONE_DEVICE")?.or(config.one_device);
        let mut settings = Self {
            workspace: workspace
                .durability(durability.unwrap_or_default())
                .same_file_system(one_device.unwrap_or_default()),
            config_path,
            state_dir: paths::state_dir(from),
            rules,
            mode,
            prompt_mode,
            is_verbose,
            session_settings,
            agents: config.agents,
            home_dir: paths::home_dir(io),
            model: from.option_or_variable(args::MODEL, "TOOL_SDK_MODEL")?,
            agent: from.option_or_variable(args::AGENT, "TOOL_SDK_AGENT")?,
            variants,
            experimental,
            disable,
            secrets_command: secrets_command.or(config.secrets_command),
            writable,
            hooks: config.hooks.map(|it| it.in_folder(roots.first().unwrap_or(&io.current_dir))),
            limits,
            audit: audit.map(|path| io.resolve_path(path)),
            record_sessions: record_sessions.unwrap_or(false),
            sandbox,
            #[cfg(feature = "net")]
            web: web::resolve_web(&config.web, from)?,
            servers: config.servers,
            workers: config.workers,
            chat: config.chat,
            serves_agents: serves_agents.unwrap_or(config.serve.has_agents()),
            roots_from_client: roots_from_client.unwrap_or(config.serve.has_client_roots()),
            serve: config.serve,
            roots,
            are_roots_named,
        };
        settings.rules.extend(settings.private_state_rules());
        Ok(settings)
    }

    /// Asks the user a question that `y` answers with yes. Without a terminal the answer is no,
    /// unless the settings answer every question with yes.
    pub(super) fn confirm(&self, question: &str, io: &Io<'_>) -> Result<bool> {
        match (self.prompt_mode, &io.console) {
            (PromptMode::AssumeYes, _) => Ok(true),
            (PromptMode::Terminal, Some(console)) => {
                let answer = console.prompt(question, &|| true)?;
                Ok(answer.is_some_and(|answer| matches!(answer.trim(), "y" | "yes")))
            }
            _ => Ok(false),
        }
    }

    /// Asks the user a question about a text, which the answer `v` shows. Without a terminal the answer
    /// is no, unless the settings answer every question with yes.
    #[cfg(feature = "mcp")]
    pub(super) fn confirm_text(&self, question: &str, text: &str, io: &Io<'_>) -> Result<bool> {
        let question = format!("{question}\n[y] yes  [v] show all of their text  [n] no\n> ");
        match (self.prompt_mode, &io.console) {
            (PromptMode::AssumeYes, _) => Ok(true),
            (PromptMode::Terminal, Some(console)) => {
                let mut answer = console.prompt(&question, &|| true)?;
                while answer.as_deref().map(str::trim) == Some("v") {
                    answer = console.prompt(&format!("{text}{question}"), &|| true)?;
                }
                Ok(answer.is_some_and(|answer| matches!(answer.trim(), "y" | "yes")))
            }
            _ => Ok(false),
        }
    }

    /// Returns the workspace with the journal of its transactions in the state folder.
    pub(super) fn workspace_with_journal(&self) -> Workspace {
        match &self.state_dir {
            Some(dir) => self.workspace.clone().with_journal(dir.join("journal")),
            None => self.workspace.clone(),
        }
    }

    /// Applies the agents, rules, mode and variants to the toolset of the program.
    pub(super) fn configure_toolset(&self, tools: Toolset) -> Result<Toolset> {
        let tools = self
            .agents
            .iter()
            .cloned()
            .fold(tools, Toolset::with_agent)
            .with_mode(self.mode)
            .with_rules(self.rules.clone())
            .with_experimental_named(self.experimental.iter().cloned());
        let tools = self.without_disabled(tools);
        self.variants.iter().try_fold(tools, |tools, (group, variant)| {
            tools.choose_variant(group, variant).map_err(CommandError::config)
        })
    }

    /// Leaves out the tools of the disabled categories, and those with disabled names.
    fn without_disabled(&self, tools: Toolset) -> Toolset {
        if self.disable.is_empty() {
            return tools;
        }
        let is_disabled = |definition: &Definition| {
            self.disable.iter().any(|group| definition.is_in_category(group))
        };
        let all = tools.all_tools();
        let of_categories = all.iter().map(|tool| tool.definition()).filter(|it| is_disabled(it));
        let names: Vec<String> = of_categories.map(|it| it.name.to_string()).collect();
        tools.without(names).without(self.disable.clone())
    }

    /// Returns every tool pattern with the key that contains it.
    pub(super) fn tool_patterns(&self) -> Vec<(String, String)> {
        let own = self.experimental.iter().map(|pattern| ("experimental".to_owned(), pattern));
        let disabled = self.disable.iter().map(|pattern| (args::DISABLE.to_owned(), pattern));
        let of_agents = self.agents.iter().flat_map(|agent| {
            let lists = [
                ("only", agent.only.as_deref().unwrap_or_default()),
                ("without", &agent.without),
                ("experimental", &agent.experimental),
            ];
            lists.into_iter().flat_map(move |(key, patterns)| {
                let place = format!("agents.{}.{key}", agent.name);
                patterns.iter().map(move |pattern| (place.clone(), pattern))
            })
        });
        own.chain(disabled)
            .chain(of_agents)
            .map(|(place, pattern)| (place, pattern.clone()))
            .collect()
    }
}

/// Returns whether commands that are known to only read run without a prompt, if that is set.
fn resolve_safe_commands(
    configured: Option<bool>,
    from: SettingSources<'_, '_>,
) -> Result<Option<bool>> {
    let switch = from.opposite_switches(args::SAFE_COMMANDS, args::NO_SAFE_COMMANDS)?;
    Ok(switch.or(from.switch("TOOL_SDK_SAFE_COMMANDS")?).or(configured))
}

/// Resolves the sandbox policy for commands.
fn resolve_sandbox(
    config: &ConfigFile,
    mode: Mode,
    from: SettingSources<'_, '_>,
) -> Result<SandboxPolicy> {
    let how = from.option_or_variable(args::SANDBOX, "TOOL_SDK_SANDBOX")?.or(config.sandbox);
    let level = from.option_or_variable(args::SANDBOX_LEVEL, "TOOL_SDK_SANDBOX_LEVEL")?;
    let level = level.or(config.sandbox_level).unwrap_or_default();
    let switch = |option, variable| match from.levels.iter().any(|it| it.get_flag(option)) {
        true => Ok(Some(true)),
        false => from.switch(variable),
    };
    let network = switch(args::SANDBOX_NETWORK, "TOOL_SDK_SANDBOX_NETWORK")?;
    let network = network.or(config.sandbox_network);
    let auto_allow = switch(args::SANDBOX_AUTO_ALLOW, "TOOL_SDK_SANDBOX_AUTO_ALLOW")?;
    let auto_allow = auto_allow.or(config.sandbox_auto_allow);
    // Modes that forbid writing make the sandbox read-only.
    let level = if mode.forbids(RiskClass::Write) { SandboxLevel::ReadOnly } else { level };
    Ok(SandboxPolicy::new(how.unwrap_or_default(), level)
        .with_network(network.unwrap_or(false))
        .with_auto_allow(auto_allow.unwrap_or(false)))
}

fn resolve_prompt_mode(from: SettingSources<'_, '_>) -> Result<PromptMode> {
    let (yes, no_input) = match from.opposite_switches(args::YES, args::NO_INPUT)? {
        Some(yes) => (yes, !yes),
        None => (
            from.switch("TOOL_SDK_YES")?.unwrap_or(false),
            from.switch("TOOL_SDK_NO_INPUT")?.unwrap_or(false),
        ),
    };
    match (yes, no_input) {
        (true, true) => {
            Err(CommandError::config("TOOL_SDK_YES and TOOL_SDK_NO_INPUT exclude each other"))
        }
        (true, false) => Ok(PromptMode::AssumeYes),
        (false, true) => Ok(PromptMode::NoInput),
        (false, false) => Ok(PromptMode::Terminal),
    }
}

/// Returns the path if it can be meant literally.
///
/// # Errors
///
/// Fails for an empty path, which would be the current folder, and for a path that starts with
/// `~`, which only a shell expands.
pub(super) fn check_path(path: PathBuf) -> std::result::Result<PathBuf, &'static str> {
    match path.components().next() {
        None => Err("it is empty; write `.` for the folder that the program runs in"),
        Some(first) if first.as_os_str() == "~" => {
            Err("`~` is not expanded here; write the path of the home folder, or `./~`")
        }
        Some(_) => Ok(path),
    }
}

#[cfg(test)]
mod tests;
