//! The options of the program, which stand at every level, and how they are read.

use std::iter;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ArgMatches, Command, value_parser};
use tool_sdk_core::{Action, Mode};
use tool_sdk_process::sandbox;

use super::{
    COLOR, CONFIG, DISABLE, MODE, NO_INPUT, NO_SAFE_COMMANDS, RECORD_SESSIONS, ROOT, SAFE_COMMANDS,
    SANDBOX, SANDBOX_AUTO_ALLOW, SANDBOX_LEVEL, SANDBOX_NETWORK, SECRETS_COMMAND, STATE_DIR,
    VERBOSE, YES, folder_arg, switch_arg, value_arg,
};
use crate::exit::Result;
use crate::{secrets, settings, style};

/// Names of program options. A tool parameter of such a name gets the flag `--arg-NAME`.
pub(crate) const RESERVED: &[&str] = &[
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
    "sandbox-network",
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

/// Adds the options of the program to a command.
pub(crate) fn with_globals(command: Command) -> Command {
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
            SANDBOX_NETWORK,
            "Let sandboxed commands use the network [env: TOOL_SDK_SANDBOX_NETWORK]",
        )
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
pub(crate) fn option_levels(matches: &ArgMatches) -> Vec<&ArgMatches> {
    let all = iter::successors(Some(matches), |it| it.subcommand().map(|(_, behind)| behind));
    // Where the switch is defined, it has a value, at least the default.
    all.filter(|it| it.try_contains_id(YES).unwrap_or_default()).collect()
}

/// Returns the last value of an option.
pub(crate) fn last_option<T>(levels: &[&ArgMatches], option: &str) -> Option<T>
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
pub(crate) fn repeat_options(
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
    let switches = [
        YES,
        NO_INPUT,
        SAFE_COMMANDS,
        NO_SAFE_COMMANDS,
        SANDBOX_AUTO_ALLOW,
        SANDBOX_NETWORK,
        RECORD_SESSIONS,
    ];
    for switch in switches {
        if levels.iter().any(|matches| matches.get_flag(switch)) {
            words.push(format!("--{switch}"));
        }
    }
    Ok(words)
}

/// Returns the rules among the options, in their order.
pub(crate) fn rule_options(matches: &ArgMatches) -> Vec<(Action, &String)> {
    let mut given = Vec::new();
    for action in [Action::Allow, Action::Ask, Action::Deny] {
        let texts = matches.get_many::<String>(action.as_str()).into_iter().flatten();
        let places = matches.indices_of(action.as_str()).into_iter().flatten();
        given.extend(places.zip(texts).map(|(place, text)| (place, action, text)));
    }
    given.sort_by_key(|(place, ..)| *place);
    given.into_iter().map(|(_, action, text)| (action, text)).collect()
}
