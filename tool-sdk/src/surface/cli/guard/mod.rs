//! Resolves the settings from the command line, the environment and the configuration file.
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

use super::config::{self, Config, Hooks};
use super::exit::{Failure, Result};
use super::{Io, grammar};
use crate::context::Settings;
use crate::effect::RiskClass;
use crate::permission::{Action, Mode, Rule, Scope};
use crate::process::sandbox::{SandboxLevel, SandboxPolicy};
use crate::toolset::AgentProfile;
use crate::truncate::Budget;
use crate::workspace::Durability;

/// The settings of one command: rules, mode, prompts, sandbox, limits.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) rules: Vec<Rule>,
    pub(super) mode: Mode,
    pub(super) answers: Answers,
    pub(super) settings: Settings,
    pub(super) agents: Vec<AgentProfile>,
    /// The selected variant of each group of tools.
    pub(super) variants: BTreeMap<String, String>,
    /// Patterns of the experimental tools that are enabled.
    pub(super) experimental: Vec<String>,
    /// The only folders in which tools may write.
    pub(super) writable: Option<Vec<PathBuf>>,
    pub(super) hooks: Option<Hooks>,
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
pub(super) enum Answers {
    /// The user is prompted at the terminal.
    Terminal,
    /// Every call is approved once (`--yes`).
    Yes,
    /// Every call that needs approval is denied (`--no-input`).
    Nobody,
}

impl Guard {
    /// Resolves the settings. `levels` are the parsed options from left to right.
    pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        let config = config::load(levels, io)?;
        let mode = chosen(levels, grammar::MODE, "TOOL_SDK_MODE", io)?;
        let mode = mode.or(config.mode).unwrap_or_default();
        let sandbox = sandbox(&config, mode, levels, io)?;
        let mut rules = config.rules;
        rules.extend(all(rules_of_environment(io)?.into_iter().chain(rules_of_options(levels)))?);
        let answers = answers(levels, io)?;
        let mut settings = Settings::default();
        let safe = pair(levels, grammar::SAFE_COMMANDS, grammar::NO_SAFE_COMMANDS)?;
        let safe = safe.or(switch(io, "TOOL_SDK_SAFE_COMMANDS")?).or(config.safe_commands);
        settings.safe_commands = safe.unwrap_or(settings.safe_commands);
        let budget = Budget::from_env(io.env).map_err(Failure::config)?;
        let variants = variants(io)?.unwrap_or(config.variants);
        let experimental = list(io, "TOOL_SDK_EXPERIMENTAL")?.unwrap_or(config.experimental);
        let writable = io.var("TOOL_SDK_WRITABLE");
        let folder = |path| written_out("TOOL_SDK_WRITABLE", path);
        let writable = writable.map(|list| std::env::split_paths(&list).map(folder).collect());
        let writable: Option<Vec<_>> = writable.transpose()?.or(config.writable);
        let audit = io.var("TOOL_SDK_AUDIT").map(|path| written_out("TOOL_SDK_AUDIT", path.into()));
        let audit = audit.transpose()?.or(config.audit);
        let durability = named(io, "TOOL_SDK_DURABLE")?.or(config.durable).unwrap_or_default();
        let one_device = switch(io, "TOOL_SDK_ONE_DEVICE")?.or(config.one_device);
        Ok(Self {
            rules,
            mode,
            answers,
            settings,
            agents: config.agents,
            variants,
            experimental,
            writable: writable.map(|folders| folders.into_iter().map(|it| io.path(it)).collect()),
            hooks: config.hooks,
            budget,
            audit: audit.map(|path| io.path(path)),
            sandbox,
            durability,
            one_device: one_device.unwrap_or_default(),
        })
    }
}

impl Guard {
    /// Returns every tool pattern with the key that contains it.
    pub(super) fn patterns(&self) -> Vec<(String, String)> {
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
fn rules_of_options(levels: &[&ArgMatches]) -> Vec<Parsed> {
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
            rules.push(rule(action, text, &format!("--{action}"), Scope::Session));
        }
    }
    rules
}

/// Returns the rules of the environment, one a line: first `allow`, then `ask`, then `deny`.
fn rules_of_environment(io: &Io<'_>) -> Result<Vec<Parsed>> {
    let mut rules = Vec::new();
    for (variable, action) in [
        ("TOOL_SDK_ALLOW", Action::Allow),
        ("TOOL_SDK_ASK", Action::Ask),
        ("TOOL_SDK_DENY", Action::Deny),
    ] {
        let text = text(io, variable)?.unwrap_or_default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            rules.push(rule(action, line, variable, Scope::User));
        }
    }
    Ok(rules)
}

/// Checks a path of the environment.
fn written_out(variable: &str, path: PathBuf) -> Result<PathBuf> {
    config::written_out(path).map_err(|why| Failure::config(format_args!("{variable}: {why}")))
}

/// A rule, or the error message for it.
type Parsed = std::result::Result<Rule, String>;

fn rule(action: Action, text: &str, origin: &str, scope: Scope) -> Parsed {
    match Rule::parse(action, text) {
        Ok(rule) => Ok(rule.origin(origin).scope(scope)),
        Err(error) => Err(format!("{origin}: {error}")),
    }
}

/// Collects rules; fails with the messages of all invalid ones.
fn all(parsed: impl Iterator<Item = Parsed>) -> Result<Vec<Rule>> {
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for rule in parsed {
        match rule {
            Ok(rule) => rules.push(rule),
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(rules) } else { Err(Failure::usage(wrong.join("\n"))) }
}

/// Returns the value of an option, or else of an environment variable.
fn chosen<T>(levels: &[&ArgMatches], option: &str, variable: &str, io: &Io<'_>) -> Result<Option<T>>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    match levels.iter().rev().find_map(|it| it.get_one::<T>(option)) {
        Some(given) => Ok(Some(given.clone())),
        None => named(io, variable),
    }
}

/// Parses an environment variable.
fn named<T: FromStr<Err: Display>>(io: &Io<'_>, variable: &str) -> Result<Option<T>> {
    let parse = |text: String| text.parse().map_err(|error| (error, variable));
    text(io, variable)?
        .map(parse)
        .transpose()
        .map_err(|(error, variable)| Failure::config(format_args!("{variable}: {error}")))
}

/// Returns the variants that the environment selects, as `GROUP=TAG_VARIABLE`.
fn variants(io: &Io<'_>) -> Result<Option<BTreeMap<String, String>>> {
    const VARIABLE: &str = "TOOL_SDK_VARIANTS";
    let pair = |item: String| {
        let (group, name) = item.split_once('=').ok_or_else(|| {
            let item = item.escape_debug();
            Failure::config(format_args!("{VARIABLE} holds `GROUP=NAME`, not `{item}`"))
        })?;
        Ok((group.trim().to_owned(), name.trim().to_owned()))
    };
    let items = list(io, VARIABLE)?;
    items.map(|items| items.into_iter().map(pair).collect()).transpose()
}

/// Returns the items of a comma-separated environment variable.
fn list(io: &Io<'_>, variable: &str) -> Result<Option<Vec<String>>> {
    let items = |text: String| {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    Ok(text(io, variable)?.map(items))
}

/// Resolves the sandbox policy for commands.
fn sandbox(
    config: &Config,
    mode: Mode,
    levels: &[&ArgMatches],
    io: &Io<'_>,
) -> Result<SandboxPolicy> {
    let how = chosen(levels, grammar::SANDBOX, "TOOL_SDK_SANDBOX", io)?.or(config.sandbox);
    let level = chosen(levels, grammar::SANDBOX_LEVEL, "TOOL_SDK_SANDBOX_LEVEL", io)?;
    let level = level.or(config.sandbox_level).unwrap_or_default();
    let network = switch(io, "TOOL_SDK_SANDBOX_NETWORK")?.or(config.sandbox_network);
    // Modes that forbid writing make the sandbox read-only.
    let level = if mode.forbids(RiskClass::Write) { SandboxLevel::ReadOnly } else { level };
    Ok(SandboxPolicy::new(how.unwrap_or_default(), level).with_network(network.unwrap_or(false)))
}

fn answers(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Answers> {
    let said = match pair(levels, grammar::YES, grammar::NO_INPUT)? {
        Some(yes) => (yes, !yes),
        None => (
            switch(io, "TOOL_SDK_YES")?.unwrap_or(false),
            switch(io, "TOOL_SDK_NO_INPUT")?.unwrap_or(false),
        ),
    };
    match said {
        (true, true) => {
            Err(Failure::config("TOOL_SDK_YES and TOOL_SDK_NO_INPUT exclude each other"))
        }
        (true, false) => Ok(Answers::Yes),
        (false, true) => Ok(Answers::Nobody),
        (false, false) => Ok(Answers::Terminal),
    }
}

/// Returns the value of two opposite switches on any level; `None` if neither is set.
fn pair(levels: &[&ArgMatches], on: &str, off: &str) -> Result<Option<bool>> {
    let given = |name| levels.iter().any(|matches| matches.get_flag(name));
    match (given(on), given(off)) {
        (true, true) => {
            Err(Failure::usage(format_args!("`--{on}` and `--{off}` exclude each other")))
        }
        (false, false) => Ok(None),
        (on, _) => Ok(Some(on)),
    }
}

/// Parses a boolean environment variable.
fn switch(io: &Io<'_>, variable: &str) -> Result<Option<bool>> {
    match text(io, variable)?.as_deref() {
        None => Ok(None),
        Some("1" | "true") => Ok(Some(true)),
        Some("0" | "false") => Ok(Some(false)),
        Some(other) => {
            let other = other.escape_debug();
            Err(Failure::config(format_args!(
                "{variable} must be `true` or `false`, not `{other}`"
            )))
        }
    }
}

fn text(io: &Io<'_>, variable: &str) -> Result<Option<String>> {
    io.var(variable)
        .map(|value| value.into_string())
        .transpose()
        .map_err(|_| Failure::config(format_args!("{variable} is not UTF-8")))
}

#[cfg(test)]
mod tests;
