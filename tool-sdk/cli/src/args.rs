//! The clap definition of every command and option.
//!
//! `call` and `check` are parsed in two steps, because their flags depend on the tool: first up to
//! the tool's name, then the rest with [`tool_command`]. Program options are declared at every
//! level; [`settings`](super::settings) reads all [`option_levels`], so that options before the
//! command are not lost when there are more after it.

use std::ffi::OsString;
use std::iter;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tool_sdk_core::{Action, Definition, Mode, provider::Dialect};
use tool_sdk_process::sandbox;

use super::exit::Result;
use super::flag::{self, ParamFlag};
use super::{
    chat, mcp, new_project, rules, schema, secrets, serve, settings, setup, shell_files, style,
    trust,
};

pub(super) const AGENT: &str = "agent";
pub(super) const AGENTS: &str = "agents";
pub(super) const ARGUMENTS: &str = "arguments";
pub(super) const CATEGORY: &str = "category";
pub(super) const CHECK: &str = "check";
pub(super) const COLOR: &str = "color";
pub(super) const CONFIG: &str = "config";
pub(super) const DISABLE: &str = "disable";
pub(super) const EVENTS: &str = "events";
pub(super) const ID: &str = "id";
pub(super) const FILE: &str = "file";
pub(super) const FORMAT: &str = "format";
pub(super) const JSON: &str = "json";
pub(super) const LINT: &str = "lint";
pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";
pub(super) const NAME: &str = "name";
pub(super) const NO_INPUT: &str = "no-input";
pub(super) const NO_SAFE_COMMANDS: &str = "no-safe-commands";
/// The format that is a document of all tools, and no dialect.
pub(super) const OPENAPI: &str = "openapi";
pub(super) const RECORD_SESSIONS: &str = "record-sessions";
pub(super) const ROOT: &str = "root";
pub(super) const ROOTS_FROM_CLIENT: &str = "roots-from-client";
pub(super) const SAFE_COMMANDS: &str = "safe-commands";
pub(super) const SANDBOX: &str = "sandbox";
pub(super) const SANDBOX_AUTO_ALLOW: &str = "sandbox-auto-allow";
pub(super) const SANDBOX_LEVEL: &str = "sandbox-level";
pub(super) const SAVE: &str = "save";
pub(super) const SCOPE: &str = "scope";
pub(super) const SECRETS_COMMAND: &str = "secrets-command";
pub(super) const SELF_TEST: &str = "self-test";
pub(super) const STATE_DIR: &str = "state-dir";
pub(super) const TOOLS: &str = "tools";
pub(super) const VERBOSE: &str = "verbose";
pub(super) const WRITE: &str = "write";
pub(super) const YES: &str = "yes";

/// Replaces a blank where help must not be wrapped, as in an example command.
pub(super) const UNBREAKABLE: &str = "\u{a0}";

/// Names of program options. A tool parameter of such a name gets the flag `--arg-NAME`.
pub(super) const RESERVED: &[&str] = &[
    "agent",
    "allow",
    "approval-timeout",
    "ask",
    "call-timeout",
    "capture-bytes",
    "color",
    "config",
    "deny",
    "disable",
    "events",
    "help",
    "json",
    "loop-calls-per-minute",
    "loop-guard",
    "loop-hard-stop",
    "loop-max-cycle",
    "loop-threshold",
    "loop-window",
    "mode",
    "model",
    "no-input",
    "no-safe-commands",
    "output-bytes",
    "output-lines",
    "output-tokens",
    "outputs-max-age",
    "record-sessions",
    "root",
    "safe-commands",
    "sandbox",
    "sandbox-auto-allow",
    "sandbox-level",
    "save",
    "secrets-command",
    "state-dir",
    "verbose",
    "web-cache-time",
    "web-hosts",
    "web-max-bytes",
    "web-plain-http",
    "web-robots",
    "web-search",
    "web-search-model",
    "web-github",
    "web-timeout",
    "web-user-agent",
    "yes",
];

/// Builds the command of the program; `call` and `check` end at the name of the tool.
pub(super) fn program_command(program: &str) -> Command {
    with_globals(
        Command::new(program.to_owned())
            .bin_name(program)
            .no_binary_name(true)
            .about("Lists, shows and calls the tools of this program")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands([
                list_command(),
                show_command(),
                schema_command(),
                call_command(program),
                check_command(program),
                batch_command(),
                approvals_command(),
                rules::build_command(),
                secrets::build_command(),
                trust::build_command(),
                new_project::build_command(),
                doctor_command(),
            ])
            .subcommands(mcp::build_command(program))
            .subcommands(serve::build_command())
            .subcommands(chat::build_command())
            .subcommands(agents_command())
            .subcommands(setup::build_command(program))
            .subcommands([shell_files::completions_command(program), shell_files::man_command()])
            .subcommands(token_command())
            .subcommands(workers_command())
            .subcommands(state_commands()),
    )
}

#[cfg(feature = "http")]
fn token_command() -> Option<Command> {
    Some(super::token::build_command())
}

#[cfg(not(feature = "http"))]
fn token_command() -> Option<Command> {
    None
}

#[cfg(feature = "remote")]
fn workers_command() -> Option<Command> {
    Some(super::workers::build_command())
}

#[cfg(not(feature = "remote"))]
fn workers_command() -> Option<Command> {
    None
}

#[cfg(feature = "agent")]
fn agents_command() -> Option<Command> {
    Some(super::agents::build_command())
}

#[cfg(not(feature = "agent"))]
fn agents_command() -> Option<Command> {
    None
}

#[cfg(feature = "store")]
fn state_commands() -> Vec<Command> {
    vec![
        super::state::build_command(),
        super::sessions::build_command(),
        super::memory::build_command(),
    ]
}

#[cfg(not(feature = "store"))]
fn state_commands() -> Vec<Command> {
    Vec::new()
}

/// The hint of a command that the program is built without.
#[cfg(not(feature = "mcp"))]
pub(super) const MCP_FEATURE: &str =
    "the feature `mcp` of `tool-sdk` adds it, as in `tool-sdk = { features = [\"cli\", \"mcp\"] }`";

/// The hint of the command `chat` that the program is built without.
#[cfg(not(feature = "agent"))]
pub(super) const AGENT_FEATURE: &str = "the feature `agent` of `tool-sdk` adds it, as in `tool-sdk = { features = [\"agent\", \"cli\"] }`";

/// The hint of the command `serve acp` that the program is built without.
#[cfg(not(feature = "acp"))]
pub(super) const ACP_FEATURE: &str =
    "the feature `acp` of `tool-sdk` adds it, as in `tool-sdk = { features = [\"acp\", \"cli\"] }`";

/// Builds a hidden command that takes any arguments and whose run says what is missing.
#[cfg(not(feature = "acp"))]
pub(super) fn disabled_command(name: &'static str) -> Command {
    let any = Arg::new("any").num_args(0..).allow_hyphen_values(true).trailing_var_arg(true);
    Command::new(name).hide(true).disable_help_flag(true).arg(any.hide(true))
}

/// Builds `call NAME …` or `check NAME …` with the parameters of the tool as flags.
pub(super) fn tool_command(
    program: &str,
    verb: ToolVerb,
    definition: &Definition,
    flags: &[ParamFlag<'_>],
) -> Command {
    let verb_name = verb.as_str();
    let name = definition.name.as_str();
    let arguments = Arg::new(ARGUMENTS)
        .value_name("JSON | - | @FILE")
        .help("Arguments as JSON; `-` reads them from standard input, `@FILE` from a file")
        .value_parser(value_parser!(OsString))
        .conflicts_with_all(flags.iter().map(|flag| flag.id.clone()));
    let command = Command::new(name.to_owned())
        .bin_name(format!("{program} {verb_name} {name}"))
        .no_binary_name(true)
        .about(style::sanitize_text(&style::join_paragraphs(&definition.description)).into_owned())
        .override_usage(tool_usage(program, verb, name))
        .arg(arguments)
        .args(flags.iter().map(ParamFlag::to_arg))
        .args(verb.extra_args());
    with_globals(match flag::example_commands(program, definition) {
        examples if examples.is_empty() => command,
        examples => {
            let lines = examples.join("\n").replace('\n', "\n  ").replace(' ', UNBREAKABLE);
            command.after_help(format!("Examples:\n{UNBREAKABLE}{UNBREAKABLE}{lines}"))
        }
    })
}

/// Builds the command that parses the options after the name of an unknown tool.
pub(super) fn tool_options_command(verb: ToolVerb) -> Command {
    with_globals(Command::new(verb.as_str()).no_binary_name(true).args(verb.extra_args()))
}

/// Returns the usage lines of a tool: arguments as JSON, or as flags.
fn tool_usage(program: &str, verb: ToolVerb, name: &str) -> String {
    let start = format!("{program} {} {name}", verb.as_str());
    format!("{start} [JSON | - | @FILE] [OPTIONS]\n       {start} [--PARAMETER VALUE]… [OPTIONS]")
}

fn list_command() -> Command {
    with_globals(
        Command::new("list")
            .about("List the tools, one a line: name, risk, description")
            .args([
                json_flag("Print a JSON array"),
                value_arg(CATEGORY, "C", "Only tools of this category"),
            ])
            .args(audience_args()),
    )
}

fn show_command() -> Command {
    with_globals(
        Command::new("show")
            .about("Show everything about tools")
            .args([
                Arg::new(NAME)
                    .value_name("NAME")
                    .num_args(1..)
                    .required(true)
                    .help("The tool's name, or an alias; repeatable"),
                json_flag("Print the definition as JSON; a list of them when several are named"),
            ])
            .args(audience_args()),
    )
}

fn schema_command() -> Command {
    let formats = Dialect::ALL.map(Dialect::as_str).into_iter();
    let openapi = cfg!(feature = "http").then_some(OPENAPI);
    let formats = PossibleValuesParser::new(formats.chain([schema::LEGACY_FORMAT]).chain(openapi));
    with_globals(
        Command::new("schema")
            .about("Print tool schemas in the format of a provider or protocol")
            .args([
                Arg::new(NAME)
                    .value_name("NAME")
                    .num_args(0..)
                    .help("Tools; all of them by default"),
                value_arg(FORMAT, "F", "The format")
                    .default_value(Dialect::Mcp.as_str())
                    .value_parser(formats),
                folder_arg(WRITE, "Write one file per tool into this folder").conflicts_with(CHECK),
                folder_arg(
                    CHECK,
                    "Compare with the files in this folder; exit with 1 when they differ",
                ),
                switch_arg(
                    LINT,
                    "Print what the format does not support; exit with 1 if there is any",
                ),
                json_flag("With --lint, --write or --check: print the report as JSON"),
            ])
            .args(audience_args()),
    )
}

/// A command for one call of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolVerb {
    Call,
    Check,
}

impl ToolVerb {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Check => "check",
        }
    }

    fn extra_args(self) -> Vec<Arg> {
        let mut args = match self {
            Self::Call => {
                vec![
                    events_flag(),
                    json_flag("Print one JSON value: the result or the error"),
                    folder_arg(
                        SAVE,
                        "Save images and other attachments of the result in this folder",
                    ),
                ]
            }
            Self::Check => vec![json_flag("Print the decision as JSON")],
        };
        args.extend(caller_args());
        args
    }
}

fn call_command(program: &str) -> Command {
    single_tool_command(program, ToolVerb::Call, "Call a tool")
}

fn check_command(program: &str) -> Command {
    single_tool_command(
        program,
        ToolVerb::Check,
        "Print the permission decision for a call without running it",
    )
}

fn single_tool_command(program: &str, verb: ToolVerb, about: &'static str) -> Command {
    let name = verb.as_str();
    with_globals(
        Command::new(name)
            .about(about)
            .override_usage(tool_usage(program, verb, "NAME"))
            .after_help(format!(
                "`{program} {name} NAME --help` lists the tool's parameters, \
                 `{program} list` the tools."
            ))
            .arg_required_else_help(true)
            .allow_external_subcommands(true)
            .disable_help_subcommand(true)
            .args(verb.extra_args()),
    )
}

fn batch_command() -> Command {
    with_globals(
        Command::new("batch")
            .about("Run many calls: one JSON object a line in, one result a line out, in order")
            .args([
                Arg::new(FILE)
                    .value_name("FILE | -")
                    .help("The calls; standard input by default")
                    .value_parser(value_parser!(OsString)),
                events_flag(),
                json_flag("Print one JSON array"),
            ])
            .args(caller_args()),
    )
}

fn approvals_command() -> Command {
    let id = Arg::new(ID).value_name("ID").required(true).help("The id that `list` shows");
    with_globals(
        Command::new("approvals")
            .about("List or revoke stored approvals")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands([
                with_globals(
                    Command::new("list")
                        .about("List the approvals of every workspace")
                        .arg(json_flag("Print a JSON array")),
                ),
                with_globals(Command::new("revoke").about("Revoke an approval").arg(id)),
            ]),
    )
}

fn doctor_command() -> Command {
    with_globals(
        Command::new("doctor")
            .about("Report what this machine supports; exit with 1 when a requirement is not met")
            .args([
                switch_arg(SELF_TEST, "Run a sandboxed child that tries to escape"),
                json_flag("Print one JSON value"),
            ]),
    )
}

pub(super) fn with_globals(command: Command) -> Command {
    const HEADING: &str = "Global options";
    let rule =
        |name, help| value_arg(name, "RULE", help).action(ArgAction::Append).help_heading(HEADING);
    let modes =
        PossibleValuesParser::new(Mode::ALL.map(Mode::as_str)).try_map(|mode| mode.parse::<Mode>());
    let sandbox_modes = sandbox::SandboxMode::ALL.iter().map(|mode| mode.as_str());
    let sandbox_modes = PossibleValuesParser::new(sandbox_modes)
        .try_map(|mode| mode.parse::<sandbox::SandboxMode>());
    let levels = sandbox::SandboxLevel::ALL.iter().map(|level| level.as_str());
    let levels =
        PossibleValuesParser::new(levels).try_map(|level| level.parse::<sandbox::SandboxLevel>());
    let command = command.args(settings::limit_options()).args(settings::web_options());
    command.args([
        folder_arg(ROOT, "A folder that tools may access; repeatable [env: TOOL_SDK_ROOT] [default: .]")
            .action(ArgAction::Append)
            .help_heading(HEADING),
        rule("allow", "Allow what matches `permission(pattern)`; repeatable [env: TOOL_SDK_ALLOW]"),
        rule("ask", "Ask about what matches; the last rule decides [env: TOOL_SDK_ASK]"),
        rule("deny", "Deny what matches; only a later rule overrides it [env: TOOL_SDK_DENY]"),
        value_arg(MODE, "MODE", "The default where no rule matches [env: TOOL_SDK_MODE] [default: auto]")
            .value_parser(modes)
            .help_heading(HEADING),
        switch_arg(YES, "Approve every call once without a prompt [env: TOOL_SDK_YES]")
            .help_heading(HEADING),
        switch_arg(NO_INPUT, "Never prompt; deny what needs approval [env: TOOL_SDK_NO_INPUT]")
            .help_heading(HEADING),
        switch_arg(SAFE_COMMANDS, "Run commands that are known to only read without a prompt [default]")
            .help_heading(HEADING),
        switch_arg(NO_SAFE_COMMANDS, "Treat such commands like any other [env: TOOL_SDK_SAFE_COMMANDS=false]")
            .help_heading(HEADING),
        value_arg(SANDBOX, "MODE", "Run commands in a sandbox [env: TOOL_SDK_SANDBOX] [default: off]")
            .value_parser(sandbox_modes)
            .help_heading(HEADING),
        value_arg(
            SANDBOX_LEVEL,
            "LEVEL",
            "What sandboxed commands may do [env: TOOL_SDK_SANDBOX_LEVEL] [default: workspace_write]",
        )
        .value_parser(levels)
        .help_heading(HEADING),
        switch_arg(
            SANDBOX_AUTO_ALLOW,
            "Run commands that the sandbox fully confines without a prompt [env: TOOL_SDK_SANDBOX_AUTO_ALLOW]",
        )
        .help_heading(HEADING),
        value_arg(DISABLE, "GROUP", "Leave out the tools of a category, or with a name; repeatable [env: TOOL_SDK_DISABLE]")
            .action(ArgAction::Append)
            .help_heading(HEADING),
        value_arg(SECRETS_COMMAND, "WORDS", "The command that prints the secret `{name}` [env: TOOL_SDK_SECRETS_COMMAND]")
            .value_parser(|words: &str| words.parse::<secrets::SecretsCommand>())
            .help_heading(HEADING),
        value_arg(CONFIG, "FILE", "The configuration file [env: TOOL_SDK_CONFIG]")
            .value_parser(value_parser!(PathBuf))
            .help_heading(HEADING),
        switch_arg(
            RECORD_SESSIONS,
            "Record calls, results and events in the state folder [env: TOOL_SDK_RECORD_SESSIONS]",
        )
        .help_heading(HEADING),
        folder_arg(STATE_DIR, "The folder for approvals and long outputs [env: TOOL_SDK_STATE_DIR]")
            .help_heading(HEADING),
        value_arg(COLOR, "WHEN", "Whether to use colours; `auto` obeys NO_COLOR [env: TOOL_SDK_COLOR] [default: auto]")
            .value_parser(PossibleValuesParser::new(style::ColorChoice::ALL.map(style::ColorChoice::as_str)))
            .help_heading(HEADING),
        switch_arg(VERBOSE, "Print more on standard error: logs of MCP servers, whole definitions [env: TOOL_SDK_VERBOSE]")
            .help_heading(HEADING),
    ])
}

/// Returns the matches of the program and of its subcommands that have program options, from left
/// to right.
pub(super) fn option_levels(matches: &ArgMatches) -> Vec<&ArgMatches> {
    let all = iter::successors(Some(matches), |it| it.subcommand().map(|(_, behind)| behind));
    // Where the switch is defined, it has a value, at least the default.
    all.filter(|it| it.try_contains_id(YES).unwrap_or_default()).collect()
}

/// Returns the last value of an option.
pub(super) fn last_option<T>(levels: &[&ArgMatches], option: &str) -> Option<T>
where
    T: Clone + Send + Sync + 'static,
{
    // Some options exist for some commands only.
    let given = |matches: &&ArgMatches| matches.try_get_one::<T>(option).ok().flatten().cloned();
    levels.iter().rev().find_map(given)
}

/// Returns the program options as words for another command line, without the roots. `to_text`
/// renders paths.
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "no client starts the program"))]
pub(super) fn repeat_options(
    levels: &[&ArgMatches],
    to_text: impl Fn(&PathBuf) -> Result<String>,
) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for rule in levels.iter().flat_map(|matches| rule_options(matches)) {
        words.extend([format!("--{}", rule.0), rule.1.clone()]);
    }
    let mode = last_option::<Mode>(levels, MODE).map(Mode::as_str);
    let sandbox = last_option(levels, SANDBOX).map(sandbox::SandboxMode::as_str);
    let level = last_option(levels, SANDBOX_LEVEL).map(sandbox::SandboxLevel::as_str);
    for (option, value) in [(MODE, mode), (SANDBOX, sandbox), (SANDBOX_LEVEL, level)] {
        words.extend(value.into_iter().flat_map(|value| [format!("--{option}"), value.to_owned()]));
    }
    for option in [CONFIG, STATE_DIR] {
        if let Some(path) = last_option::<PathBuf>(levels, option) {
            words.extend([format!("--{option}"), to_text(&path)?]);
        }
    }
    let switches =
        [YES, NO_INPUT, SAFE_COMMANDS, NO_SAFE_COMMANDS, SANDBOX_AUTO_ALLOW, RECORD_SESSIONS];
    for switch in switches {
        if levels.iter().any(|matches| matches.get_flag(switch)) {
            words.push(format!("--{switch}"));
        }
    }
    Ok(words)
}

/// Returns the rules among the options, in their order.
pub(super) fn rule_options(matches: &ArgMatches) -> Vec<(Action, &String)> {
    let mut given = Vec::new();
    for action in [Action::Allow, Action::Ask, Action::Deny] {
        let texts = matches.get_many::<String>(action.as_str()).into_iter().flatten();
        let places = matches.indices_of(action.as_str()).into_iter().flatten();
        given.extend(places.zip(texts).map(|(place, text)| (place, action, text)));
    }
    given.sort_by_key(|(place, ..)| *place);
    given.into_iter().map(|(_, action, text)| (action, text)).collect()
}

/// The options that say for which model and agent calls are made.
pub(super) fn caller_args() -> [Arg; 2] {
    [
        value_arg(
            MODEL,
            "M",
            "The model that calls: its tools, with its schemas [env: TOOL_SDK_MODEL]",
        ),
        value_arg(
            AGENT,
            "A",
            "The agent that calls: its tools, rules and mode [env: TOOL_SDK_AGENT]",
        ),
    ]
}

/// The options that filter the toolset.
fn audience_args() -> [Arg; 4] {
    [
        value_arg(
            TOOLS,
            "FILE",
            "The definitions of this tools.json in place of the program's tools",
        )
        .value_parser(value_parser!(PathBuf)),
        value_arg(SCOPE, "S", "Include tools of this scope"),
        value_arg(MODEL, "M", "Tools as this model sees them"),
        value_arg(AGENT, "A", "Tools as this agent sees them"),
    ]
}

pub(super) fn json_flag(help: &'static str) -> Arg {
    switch_arg(JSON, help)
}

fn events_flag() -> Arg {
    switch_arg(EVENTS, "Print events as JSON lines on standard error, as they happen")
}

pub(super) fn switch_arg(name: &'static str, help: &'static str) -> Arg {
    // A repeated switch is not an error.
    long_arg(name, help).action(ArgAction::SetTrue).overrides_with(name)
}

pub(super) fn value_arg(name: &'static str, placeholder: &'static str, help: &'static str) -> Arg {
    long_arg(name, help).value_name(placeholder)
}

fn long_arg(name: &'static str, help: &'static str) -> Arg {
    let unbroken = |start: &str| help.replace(start, &start.replace(' ', UNBREAKABLE));
    Arg::new(name).long(name).help(unbroken("[env: "))
}

fn folder_arg(name: &'static str, help: &'static str) -> Arg {
    value_arg(name, "DIR", help).value_parser(value_parser!(PathBuf))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    #[test]
    fn the_clap_definition_is_consistent() {
        program_command("toy").debug_assert();
        for tool_definition in test_support::tool_definitions() {
            let flags = flag::tool_flags(&tool_definition);
            for verb in [ToolVerb::Call, ToolVerb::Check] {
                tool_command("toy", verb, &tool_definition, &flags).debug_assert();
            }
        }
    }

    // The guide and the head of `mod.rs` both list the commands.
    #[test]
    fn every_command_and_every_reserved_name_is_in_the_guide() {
        let guide = include_str!("../../guide/command_line.md");
        let head = include_str!("lib.rs");
        for command in program_command("toy").get_subcommands() {
            let name = command.get_name();
            assert!(guide.contains(&format!("\n  {name} ")), "{name}");
            assert!(head.contains(&format!("\n//!   {name} ")), "{name}");
        }
        for name in RESERVED {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn every_option_of_the_program_is_reserved() {
        let call =
            program_command("toy").get_subcommands().find(|sub| sub.get_name() == "call").cloned();
        for arg in call.unwrap().get_arguments() {
            let long = arg.get_long().unwrap();
            assert!(RESERVED.contains(&long), "{long}");
        }
    }
}
