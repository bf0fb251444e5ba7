//! The commands that call one tool: `call NAME` and `check NAME`, with its parameters as flags.

use std::ffi::OsString;

use clap::{Arg, Command, value_parser};
use tool_sdk_core::Definition;

use super::{
    ARGUMENTS, SAVE, UNBREAKABLE, caller_args, events_flag, folder_arg, json_flag, with_globals,
};
use crate::flag::{self, ParamFlag};
use crate::style;

/// A command for one call of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolVerb {
    Call,
    Check,
}

impl ToolVerb {
    pub(crate) const fn as_str(self) -> &'static str {
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

pub(super) fn call_command(program: &str) -> Command {
    single_tool_command(program, ToolVerb::Call, "Call a tool")
}

pub(super) fn check_command(program: &str) -> Command {
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

/// Builds `call NAME …` or `check NAME …` with the parameters of the tool as flags.
pub(crate) fn tool_command(
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
pub(crate) fn tool_options_command(verb: ToolVerb) -> Command {
    with_globals(Command::new(verb.as_str()).no_binary_name(true).args(verb.extra_args()))
}

/// Returns the usage lines of a tool: arguments as JSON, or as flags.
fn tool_usage(program: &str, verb: ToolVerb, name: &str) -> String {
    let start = format!("{program} {} {name}", verb.as_str());
    format!("{start} [JSON | - | @FILE] [OPTIONS]\n       {start} [--PARAMETER VALUE]… [OPTIONS]")
}
