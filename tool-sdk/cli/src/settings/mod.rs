//! Merges the settings: the command line overrides the environment, which overrides the
//! configuration file.
//!
//! | | options | environment | file |
//! |---|---|---|---|
//! | rules, the last match decides | session scope | user scope, after the file | user scope |
//! | everything else: precedence | first | second | last |
//!
//! **Invariant:** a setting that cannot be parsed ends the command; no rule is ever skipped.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ArgMatches;

use super::config_file::{self, ConfigFile, HooksConfig};
use super::exit::{CommandError, Result};
use super::{Io, args};
use tool_sdk_core::AgentProfile;
use tool_sdk_core::Budget;
use tool_sdk_core::RiskClass;
use tool_sdk_core::ToolSettings;
use tool_sdk_core::{Action, Mode, Rule, RuleScope};
use tool_sdk_process::sandbox::{SandboxLevel, SandboxPolicy};
use tool_sdk_workspace::Durability;

/// The settings of one command: rules, mode, prompts, sandbox, limits.
#[derive(Debug)]
pub(super) struct ResolvedSettings {
    pub(super) rules: Vec<Rule>,
    pub(super) mode: Mode,
    pub(super) prompt_mode: PromptMode,
    pub(super) session_settings: ToolSettings,
    pub(super) agents: Vec<AgentProfile>,
    /// The selected variant of each group of tools.
    pub(super) variants: BTreeMap<String, String>,
    /// Patterns of the experimental tools that are enabled.
    pub(super) experimental: Vec<String>,
    /// The only folders in which tools may write.
    pub(super) writable: Option<Vec<PathBuf>>,
    pub(super) hooks: Option<HooksConfig>,
    pub(super) budget: Budget,
    /// The path of the audit log.
    pub(super) audit: Option<PathBuf>,
    /// The sandbox for commands.
    pub(super) sandbox: SandboxPolicy,
    /// Whether changed files are synced to disk before their call ends.
    pub(super) durability: Durability,
    /// Whether directory walks stay on one file system.
    pub(super) one_device: bool,
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

impl ResolvedSettings {
    /// Resolves the settings. `levels` are the parsed options from left to right.
    pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        let config = config_file::load(levels, io)?;
        let mode = option_or_env(levels, args::MODE, "TOOL_SDK_MODE", io)?;
        let mode = mode.or(config.mode).unwrap_or_default();
        let sandbox = sandbox_policy(&config, mode, levels, io)?;
        let mut rules = config.rules;
        rules.extend(collect_rules(env_rules(io)?.into_iter().chain(option_rules(levels)))?);
        let answers = resolve_prompt_mode(levels, io)?;
        let mut settings = ToolSettings::default();
        let safe = opposite_switches(levels, args::SAFE_COMMANDS, args::NO_SAFE_COMMANDS)?;
        let safe = safe.or(env_switch(io, "TOOL_SDK_SAFE_COMMANDS")?).or(config.safe_commands);
        settings.safe_commands = safe.unwrap_or(settings.safe_commands);
        let budget = Budget::from_env(io.env).map_err(CommandError::config)?;
        let variants = env_variants(io)?.unwrap_or(config.variants);
        let experimental = env_list(io, "TOOL_SDK_EXPERIMENTAL")?.unwrap_or(config.experimental);
        let writable = io.env_var("TOOL_SDK_WRITABLE");
        let folder = |path| env_path("TOOL_SDK_WRITABLE", path);
        let writable = writable.map(|list| std::env::split_paths(&list).map(folder).collect());
        let writable: Option<Vec<_>> = writable.transpose()?.or(config.writable);
        let audit =
            io.env_var("TOOL_SDK_AUDIT").map(|path| env_path("TOOL_SDK_AUDIT", path.into()));
        let audit = audit.transpose()?.or(config.audit);
        let durability = parse_env(io, "TOOL_SDK_DURABLE")?.or(config.durable).unwrap_or_default();
        let one_device = env_switch(io, "TOOL_SDK_ONE_DEVICE")?.or(config.one_device);
        Ok(Self {
            rules,
            mode,
            prompt_mode: answers,
            session_settings: settings,
            agents: config.agents,
            variants,
            experimental,
            writable: writable
                .map(|folders| folders.into_iter().map(|it| io.resolve_path(it)).collect()),
            hooks: config.hooks,
            budget,
            audit: audit.map(|path| io.resolve_path(path)),
            sandbox,
            durability,
            one_device: one_device.unwrap_or_default(),
        })
    }
}

impl ResolvedSettings {
    /// Returns every tool pattern with the key that contains it.
    pub(super) fn tool_patterns(&self) -> Vec<(String, String)> {
        let own = self.experimental.iter().map(|pattern| ("experimental".to_owned(), pattern));
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
        own.chain(of_agents).map(|(place, pattern)| (place, pattern.clone())).collect()
    }
}

/// Returns the rules of the command line, in their order.
fn option_rules(levels: &[&ArgMatches]) -> Vec<ParsedRule> {
    let mut rules = Vec::new();
    for matches in levels {
        let mut given = Vec::new();
        for action in [Action::Allow, Action::Ask, Action::Deny] {
            let texts = matches.get_many::<String>(action.as_str()).into_iter().flatten();
            let places = matches.indices_of(action.as_str()).into_iter().flatten();
            given.extend(places.zip(texts).map(|(place, text)| (place, action, text)));
        }
        given.sort_by_key(|(place, ..)| *place);
        for (_, action, text) in given {
            rules.push(parse_rule(action, text, &format!("--{action}"), RuleScope::Session));
        }
    }
    rules
}

/// Returns the rules of the environment, one a line: first `allow`, then `ask`, then `deny`.
fn env_rules(io: &Io<'_>) -> Result<Vec<ParsedRule>> {
    let mut rules = Vec::new();
    for (variable, action) in [
        ("TOOL_SDK_ALLOW", Action::Allow),
        ("TOOL_SDK_ASK", Action::Ask),
        ("TOOL_SDK_DENY", Action::Deny),
    ] {
        let text = env_text(io, variable)?.unwrap_or_default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            rules.push(parse_rule(action, line, variable, RuleScope::User));
        }
    }
    Ok(rules)
}

/// Checks a path of the environment.
fn env_path(variable: &str, path: PathBuf) -> Result<PathBuf> {
    config_file::check_path(path)
        .map_err(|why| CommandError::config(format_args!("{variable}: {why}")))
}

/// A rule, or the error message for it.
type ParsedRule = std::result::Result<Rule, String>;

fn parse_rule(action: Action, text: &str, origin: &str, scope: RuleScope) -> ParsedRule {
    match Rule::parse(action, text) {
        Ok(rule) => Ok(rule.origin(origin).scope(scope)),
        Err(error) => Err(format!("{origin}: {error}")),
    }
}

/// Collects rules; fails with the messages of all invalid ones.
fn collect_rules(parsed: impl Iterator<Item = ParsedRule>) -> Result<Vec<Rule>> {
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for rule in parsed {
        match rule {
            Ok(rule) => rules.push(rule),
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(rules) } else { Err(CommandError::usage(wrong.join("\n"))) }
}

/// Returns the value of an option, or else of an environment variable.
fn option_or_env<T>(
    levels: &[&ArgMatches],
    option: &str,
    variable: &str,
    io: &Io<'_>,
) -> Result<Option<T>>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    match levels.iter().rev().find_map(|it| it.get_one::<T>(option)) {
        Some(given) => Ok(Some(given.clone())),
        None => parse_env(io, variable),
    }
}

/// Parses an environment variable.
fn parse_env<T: FromStr<Err: Display>>(io: &Io<'_>, variable: &str) -> Result<Option<T>> {
    let parse = |text: String| text.parse().map_err(|error| (error, variable));
    env_text(io, variable)?
        .map(parse)
        .transpose()
        .map_err(|(error, variable)| CommandError::config(format_args!("{variable}: {error}")))
}

/// Returns the variants that the environment selects, as `GROUP=NAME`.
fn env_variants(io: &Io<'_>) -> Result<Option<BTreeMap<String, String>>> {
    const VARIABLE: &str = "TOOL_SDK_VARIANTS";
    let pair = |item: String| {
        let (group, name) = item.split_once('=').ok_or_else(|| {
            let item = item.escape_debug();
            CommandError::config(format_args!("{VARIABLE} holds `GROUP=NAME`, not `{item}`"))
        })?;
        Ok((group.trim().to_owned(), name.trim().to_owned()))
    };
    let items = env_list(io, VARIABLE)?;
    items.map(|items| items.into_iter().map(pair).collect()).transpose()
}

/// Returns the items of a comma-separated environment variable.
fn env_list(io: &Io<'_>, variable: &str) -> Result<Option<Vec<String>>> {
    let items = |text: String| {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    Ok(env_text(io, variable)?.map(items))
}

/// Resolves the sandbox policy for commands.
fn sandbox_policy(
    config: &ConfigFile,
    mode: Mode,
    levels: &[&ArgMatches],
    io: &Io<'_>,
) -> Result<SandboxPolicy> {
    let how = option_or_env(levels, args::SANDBOX, "TOOL_SDK_SANDBOX", io)?.or(config.sandbox);
    let level = option_or_env(levels, args::SANDBOX_LEVEL, "TOOL_SDK_SANDBOX_LEVEL", io)?;
    let level = level.or(config.sandbox_level).unwrap_or_default();
    let network = env_switch(io, "TOOL_SDK_SANDBOX_NETWORK")?.or(config.sandbox_network);
    // Modes that forbid writing make the sandbox read-only.
    let level = if mode.forbids(RiskClass::Write) { SandboxLevel::ReadOnly } else { level };
    Ok(SandboxPolicy::new(how.unwrap_or_default(), level).with_network(network.unwrap_or(false)))
}

fn resolve_prompt_mode(levels: &[&ArgMatches], io: &Io<'_>) -> Result<PromptMode> {
    let said = match opposite_switches(levels, args::YES, args::NO_INPUT)? {
        Some(yes) => (yes, !yes),
        None => (
            env_switch(io, "TOOL_SDK_YES")?.unwrap_or(false),
            env_switch(io, "TOOL_SDK_NO_INPUT")?.unwrap_or(false),
        ),
    };
    match said {
        (true, true) => {
            Err(CommandError::config("TOOL_SDK_YES and TOOL_SDK_NO_INPUT exclude each other"))
        }
        (true, false) => Ok(PromptMode::AssumeYes),
        (false, true) => Ok(PromptMode::NoInput),
        (false, false) => Ok(PromptMode::Terminal),
    }
}

/// Returns the value of two opposite switches on any level; `None` if neither is set.
fn opposite_switches(levels: &[&ArgMatches], on: &str, off: &str) -> Result<Option<bool>> {
    let given = |name| levels.iter().any(|matches| matches.get_flag(name));
    match (given(on), given(off)) {
        (true, true) => {
            Err(CommandError::usage(format_args!("`--{on}` and `--{off}` exclude each other")))
        }
        (false, false) => Ok(None),
        (on, _) => Ok(Some(on)),
    }
}

/// Parses a boolean environment variable.
fn env_switch(io: &Io<'_>, variable: &str) -> Result<Option<bool>> {
    match env_text(io, variable)?.as_deref() {
        None => Ok(None),
        Some("1" | "true") => Ok(Some(true)),
        Some("0" | "false") => Ok(Some(false)),
        Some(other) => {
            let other = other.escape_debug();
            Err(CommandError::config(format_args!(
                "{variable} must be `true` or `false`, not `{other}`"
            )))
        }
    }
}

fn env_text(io: &Io<'_>, variable: &str) -> Result<Option<String>> {
    io.env_var(variable)
        .map(|value| value.into_string())
        .transpose()
        .map_err(|_| CommandError::config(format_args!("{variable} is not UTF-8")))
}

#[cfg(test)]
mod tests;
