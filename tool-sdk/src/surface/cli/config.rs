//! The configuration file: rules and a mode, as a person writes them down.
//!
//! ```toml
//! mode = "auto"
//! allow = ["run(git status)"]
//!
//! [[rules]]
//! permission = "run"
//! pattern = "git push *"
//! action = "deny"
//! locked = true
//! ```
//!
//! **Invariant:** what is not understood is an error with its place. A rule that got lost
//! could be a call that runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::exit::{Failure, Result};
use super::{Io, grammar, input, mcp, serve};
use crate::hook::external::ExternalHooks;
use crate::permission::{Action, Mode, Rule, Scope, WrittenRule};
use crate::process::sandbox;
use crate::tool::closest;
use crate::toolset::AgentProfile;
use crate::workspace::Durability;

/// The most that is read: more is no configuration.
const MAX_BYTES: u64 = 1 << 20;

/// Commands that look at calls.
#[derive(Debug)]
pub(super) struct Hooks {
    pub(super) commands: ExternalHooks,
    /// What among them is not understood, and costs no guard.
    pub(super) remarks: Vec<String>,
}

/// What a configuration says.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// In the order in which they are written.
    pub(super) rules: Vec<Rule>,
    pub(super) mode: Option<Mode>,
    pub(super) safe_commands: Option<bool>,
    pub(super) agents: Vec<AgentProfile>,
    /// Which variant of which group of tools.
    pub(super) variants: BTreeMap<String, String>,
    /// The experiments that take part.
    pub(super) experimental: Vec<String>,
    /// The only folders in which something is written.
    pub(super) writable: Option<Vec<PathBuf>>,
    pub(super) hooks: Option<Hooks>,
    /// Where decisions and runs are written down.
    pub(super) audit: Option<PathBuf>,
    /// Servers whose tools are used.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "there is nobody to use them"))]
    pub(super) servers: mcp::Servers,
    /// Who may come in where the tools are served.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is served"))]
    pub(super) principals: serve::Principals,
    /// Whether changed files are on the disk when their call ends.
    pub(super) durable: Option<Durability>,
    pub(super) sandbox: Option<sandbox::Mode>,
    pub(super) sandbox_level: Option<sandbox::Level>,
    pub(super) sandbox_network: Option<bool>,
}

/// The configuration that the command line or the environment names, else the user's own,
/// where there is one.
///
/// None is ever looked for in the workspace: whoever writes there must not be able to
/// change what is allowed.
pub(super) fn load(levels: &[&ArgMatches], io: &Io<'_>) -> Result<Config> {
    let named = named(levels, io);
    let Some(path) = named.clone().or_else(|| users_config(io)) else {
        return Ok(Config::default());
    };
    match File::open(&path) {
        Err(error) if named.is_none() && is_missing(&error) => Ok(Config::default()),
        Err(error) => {
            Err(Failure::config(format_args!("cannot open `{}`: {error}", path.display())))
        }
        Ok(mut file) => {
            let name = path.display().to_string();
            let text = input::text(&mut file, &name, MAX_BYTES)?;
            parse(&text, &name).map_err(|mistake| {
                Failure::config(format_args!("{name}:{}: {}", mistake.line, mistake.message))
            })
        }
    }
}

/// The file that is read, whether it is there or not.
pub(super) fn path(levels: &[&ArgMatches], io: &Io<'_>) -> Option<PathBuf> {
    named(levels, io).or_else(|| users_config(io))
}

fn named(levels: &[&ArgMatches], io: &Io<'_>) -> Option<PathBuf> {
    levels
        .iter()
        .rev()
        .find_map(|matches| matches.get_one::<PathBuf>(grammar::CONFIG).cloned())
        .or_else(|| io.var("TOOL_SDK_CONFIG").map(PathBuf::from))
        .map(|path| io.path(path))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn users_config(io: &Io<'_>) -> Option<PathBuf> {
    let absolute = |name| io.var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .or_else(|| absolute("APPDATA"))
        .map(|base| base.join(Path::new("tool-sdk/config.toml")))
}

/// Something that is not understood, and on which line.
#[derive(Debug)]
struct Mistake {
    line: usize,
    message: String,
}

impl Mistake {
    fn at(text: &str, byte: usize, message: impl Into<String>) -> Self {
        Self { line: line(text, byte), message: message.into() }
    }

    fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start);
        Self::at(text, start, error.message())
    }
}

/// The line of a byte, counting from 1.
fn line(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}

#[derive(Deserialize)]
struct Written {
    mode: Option<Mode>,
    safe_commands: Option<bool>,
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    #[serde(default)]
    deny: Vec<Spanned<String>>,
    #[serde(default)]
    rules: Vec<Spanned<WrittenRule>>,
    #[serde(default)]
    agents: BTreeMap<String, Spanned<Map<String, Value>>>,
    #[serde(default)]
    variants: BTreeMap<String, String>,
    #[serde(default)]
    experimental: Vec<String>,
    writable: Option<Vec<PathBuf>>,
    hooks: Option<Spanned<Value>>,
    audit: Option<PathBuf>,
    durable: Option<Durability>,
    mcp: Option<Spanned<Value>>,
    serve: Option<Spanned<Value>>,
    sandbox: Option<sandbox::Mode>,
    sandbox_level: Option<sandbox::Level>,
    sandbox_network: Option<bool>,
}

const KEYS: &[&str] = &[
    "agents",
    "allow",
    "ask",
    "audit",
    "deny",
    "durable",
    "experimental",
    "hooks",
    "mcp",
    "mode",
    "rules",
    "safe_commands",
    "sandbox",
    "sandbox_level",
    "sandbox_network",
    "serve",
    "variants",
    "writable",
];

const RULE_KEYS: &[&str] = &["action", "argument", "locked", "pattern", "permission"];

fn parse(text: &str, name: &str) -> std::result::Result<Config, Mistake> {
    let from_toml = |error: toml::de::Error| Mistake::from_toml(text, &error);
    check_keys(text, DeTable::parse(text).map_err(from_toml)?.get_ref())?;
    let written: Written = toml::from_str(text).map_err(from_toml)?;

    let mut rules = Vec::new();
    for (action, list) in
        [(Action::Allow, written.allow), (Action::Ask, written.ask), (Action::Deny, written.deny)]
    {
        for entry in list {
            let start = entry.span().start;
            let rule = Rule::parse(action, entry.get_ref())
                .map_err(|error| Mistake::at(text, start, error.to_string()))?;
            rules.push((start, rule));
        }
    }
    for entry in written.rules {
        let start = entry.span().start;
        let rule = entry.into_inner().read();
        let rule = rule.map_err(|error| Mistake::at(text, start, error.to_string()))?;
        rules.push((start, rule));
    }
    rules.sort_by_key(|(start, _)| *start);
    let rules = rules
        .into_iter()
        .map(|(start, rule)| {
            rule.scope(Scope::User).origin(format!("{name}:{}", line(text, start)))
        })
        .collect();
    let agent = |(name, entry): (String, Spanned<Map<String, Value>>)| {
        let start = entry.span().start;
        agent(name, entry.into_inner()).map_err(|why| Mistake::at(text, start, why))
    };
    Ok(Config {
        rules,
        mode: written.mode,
        safe_commands: written.safe_commands,
        agents: written.agents.into_iter().map(agent).collect::<std::result::Result<_, _>>()?,
        variants: written.variants,
        experimental: written.experimental,
        writable: written.writable,
        hooks: written.hooks.map(|entry| hooks(text, &entry)).transpose()?,
        audit: written.audit,
        durable: written.durable,
        servers: written.mcp.map(|entry| servers(text, &entry)).transpose()?.unwrap_or_default(),
        principals: written.serve.map(|it| principals(text, &it)).transpose()?.unwrap_or_default(),
        sandbox: written.sandbox,
        sandbox_level: written.sandbox_level,
        sandbox_network: written.sandbox_network,
    })
}

/// `[agents.NAME]`: what one agent has.
fn agent(name: String, mut entry: Map<String, Value>) -> std::result::Result<AgentProfile, String> {
    entry.insert("name".to_owned(), name.into());
    serde_json::from_value(Value::Object(entry)).map_err(|error| error.to_string())
}

/// `[hooks]`: commands that look at calls, in the shape that other systems have them.
///
/// A guard that is not in force is a mistake; what else is not understood is said.
fn hooks(text: &str, entry: &Spanned<Value>) -> std::result::Result<Hooks, Mistake> {
    let (commands, mistakes) = ExternalHooks::from_value(entry.get_ref());
    let words = mistakes.iter().map(ToString::to_string).collect::<Vec<_>>();
    if mistakes.iter().any(|mistake| mistake.fatal) {
        return Err(Mistake::at(text, entry.span().start, words.join("; ")));
    }
    Ok(Hooks { commands, remarks: words })
}

/// `[mcp]`: servers whose tools are used.
fn servers(text: &str, entry: &Spanned<Value>) -> std::result::Result<mcp::Servers, Mistake> {
    mcp::servers(entry.get_ref()).map_err(|why| Mistake::at(text, entry.span().start, why))
}

/// `[serve]`: who may come in.
fn principals(
    text: &str,
    entry: &Spanned<Value>,
) -> std::result::Result<serve::Principals, Mistake> {
    serve::principals(entry.get_ref()).map_err(|why| Mistake::at(text, entry.span().start, why))
}

/// Finds the first key that nothing knows.
fn check_keys(text: &str, table: &DeTable<'_>) -> std::result::Result<(), Mistake> {
    known(text, table, KEYS)?;
    let rules = table.get("rules").and_then(|rules| rules.get_ref().as_array());
    for rule in rules.into_iter().flatten() {
        if let DeValue::Table(rule) = rule.get_ref() {
            known(text, rule, RULE_KEYS)?;
        }
    }
    Ok(())
}

fn known(text: &str, table: &DeTable<'_>, keys: &[&str]) -> std::result::Result<(), Mistake> {
    let unknown = table.iter().map(|(key, _)| key).find(|key| !keys.contains(&&**key.get_ref()));
    let Some(key) = unknown else { return Ok(()) };
    let meant = match closest(key.get_ref(), keys) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("the keys here are {}", keys.join(", ")),
    };
    let message = format!("unknown key `{}`; {meant}", key.get_ref().escape_debug());
    Err(Mistake::at(text, key.span().start, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_mistake(text: &str, line: usize, words: &str) {
        let mistake = parse(text, "f").unwrap_err();
        assert!(mistake.message.contains(words), "{text}: {mistake:?}");
        assert_eq!(mistake.line, line, "{text}: {mistake:?}");
    }

    #[test]
    fn everything_that_can_be_said_is_read() {
        let config = parse(
            r#"
mode = "strict"
durable = "never"
safe_commands = false
deny = ["delete", "read(*.env)"]
allow = ["read"]

[[rules]]
permission = "run"
pattern = "git *"
action = "allow"

[[rules]]
permission = "edit"
argument = "path"
pattern = "/etc/*"
action = "deny"
locked = true
"#,
            "f",
        )
        .unwrap();
        let rules: Vec<(String, &str, bool)> = config
            .rules
            .iter()
            .map(|rule| (rule.to_string(), rule.origin.as_str(), rule.locked))
            .collect();
        let rule = |text: &str, origin, locked| (text.to_owned(), origin, locked);
        assert_eq!(
            rules,
            [
                rule("deny delete", "f:5", false),
                rule("deny read(*.env)", "f:5", false),
                rule("allow read", "f:6", false),
                rule("allow run(git *)", "f:8", false),
                rule("deny edit(path: /etc/*)", "f:13", true),
            ]
        );
        assert!(config.rules.iter().all(|rule| rule.scope == Scope::User));
        assert_eq!((config.mode, config.safe_commands), (Some(Mode::Strict), Some(false)));
        assert_eq!(config.durable, Some(Durability::Never));
        assert!(parse("", "f").unwrap().rules.is_empty());
    }

    #[test]
    fn every_mistake_has_its_line() {
        check_mistake("\nmod = \"plan\"", 2, "unknown key `mod`; did you mean `mode`?");
        check_mistake("yes = true", 1, "unknown key `yes`; the keys here are agents, allow, ask");
        check_mistake("mode = \"careless\"", 1, "careless");
        check_mistake("\n\nmode = ", 3, "");
        check_mistake("allow = [\"a\",\n\"b(c\"]", 2, "`b(c` is not a rule");
        check_mistake("allow = \"a\"", 1, "invalid type");
        check_mistake("[[rules]]\npermision = \"a\"", 2, "did you mean `permission`?");
        check_mistake("[[rules]]\npermission = \"a\"", 1, "missing field `action`");
        check_mistake(
            "[[rules]]\npermission = \"a\"\naction = \"alow\"",
            3,
            "unknown variant `alow`",
        );
        for empty in ["permission = \"\"", "permission = \"a\"\npattern = \" \""] {
            check_mistake(&format!("[[rules]]\n{empty}\naction = \"deny\""), 1, "is empty");
        }
        check_mistake(
            "[[rules]]\npermission = \"a\"\nargument = \"b\"\naction = \"deny\"",
            1,
            "needs a `pattern`",
        );
        // Whose a rule is, is not for the file to say.
        check_mistake(
            "[[rules]]\npermission = \"a\"\naction = \"deny\"\nscope = \"session\"",
            4,
            "unknown key `scope`",
        );
    }
}
