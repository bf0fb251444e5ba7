//! The clap definition of every command and option.
//!
//! `call` and `check` are parsed in two steps, because their flags depend on the tool: first up to
//! the tool's name, then the rest with [`tool_command`]. Program options are declared at every
//! level; [`settings`](super::settings) reads all [`option_levels`], so that options before the
//! command are not lost when there are more after it.

mod global_options;
mod tool_commands;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, value_parser};
use tool_sdk_core::provider::Dialect;

#[cfg(feature = "mcp")]
pub(super) use self::global_options::repeat_options;
pub(super) use self::global_options::{
    RESERVED, last_option, option_levels, rule_options, with_globals,
};
pub(super) use self::tool_commands::{ToolVerb, tool_command, tool_options_command};
use self::tool_commands::{call_command, check_command};
use super::{chat, mcp, new_project, rules, schema, secrets, serve, setup, shell_files, trust};

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
pub(super) const SANDBOX_NETWORK: &str = "sandbox-network";
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
    use crate::{flag, test_support};

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
        let guide = include_str!("../../../guide/command_line.md");
        let head = include_str!("../lib.rs");
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
