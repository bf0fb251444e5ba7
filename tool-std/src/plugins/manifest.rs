//! What a plugin brings, read from the files of its package.
//!
//! Two layouts are read. One has a file `plugin.toml` with the name, the tools and the rules; the other
//! is that of Claude Code, with `.claude-plugin/plugin.json`. In both, `skills/`, `agents/`,
//! `hooks/hooks.json` and `.mcp.json` are found by their places.
//!
//! **Invariant:** a manifest is read from the bytes that were shown; nothing that it wishes for is
//! granted by reading it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tool_sdk::{
    Action, ExternalHooks, Risk, RiskClass, Rule, ToolDisplay, ToolError, escape_for_display,
};

use crate::packages::entry_name::{check_entry_name, is_folder_name};
use crate::packages::package::{PackageContent, PackageFile};

/// The file of a plugin of this program.
pub(super) const FILE_NAME: &str = "plugin.toml";

/// The file of a plugin of Claude Code.
pub(super) const CLAUDE_FILE_NAME: &str = ".claude-plugin/plugin.json";

/// The file with the hooks, unless the manifest names another one.
const HOOKS_FILE: &str = "hooks/hooks.json";

/// The file with the MCP servers, unless the manifest names another one.
const SERVERS_FILE: &str = ".mcp.json";

/// The most characters of a line about a plugin that a model reads.
pub(super) const MAX_LINE: usize = 300;

/// How many tools a plugin may have.
const MAX_TOOLS: usize = 100;

/// The longest time limit of a tool.
const MAX_SECONDS: f64 = 3600.0;

/// What a plugin brings.
#[derive(Clone, Debug, Default)]
pub(super) struct PluginManifest {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) description: String,
    pub(super) tools: Vec<CommandToolEntry>,
    pub(super) rules: Vec<Rule>,
    /// The hooks, as in the settings of Claude Code.
    pub(super) hooks: Option<Value>,
    /// The MCP servers by their names, as in `.mcp.json`.
    pub(super) servers: BTreeMap<String, ServerDeclaration>,
    /// The folders with skills, relative to the plugin.
    pub(super) skill_folders: Vec<String>,
    /// The folders with agents, relative to the plugin.
    pub(super) agent_folders: Vec<String>,
    /// What has no effect here.
    pub(super) notes: Vec<String>,
}

/// A tool that runs a command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandToolEntry {
    pub(super) name: String,
    pub(super) description: String,
    /// The program and its arguments. A program with a `/` is a file of the plugin.
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) protocol: CommandProtocol,
    /// The JSON schema of the arguments.
    #[serde(default = "empty_schema")]
    pub(super) parameters: Value,
    /// The JSON schema of the result.
    pub(super) output: Option<Value>,
    #[serde(default)]
    risk: DeclaredRisk,
    #[serde(default)]
    destructive: bool,
    #[serde(default)]
    idempotent: bool,
    #[serde(default)]
    open_world: bool,
    pub(super) permission: Option<String>,
    pub(super) title: Option<String>,
    pub(super) category: Option<String>,
    #[serde(default)]
    pub(super) display: ToolDisplay,
    /// The time limit of a call in seconds.
    timeout: Option<f64>,
    /// The most that is read of the output, in bytes.
    pub(super) max_output: Option<usize>,
    /// Variables for the command.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Example arguments, as JSON.
    #[serde(default)]
    pub(super) examples: Vec<String>,
}

/// How a command is talked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CommandProtocol {
    /// It runs once for each call: the arguments on standard input, the result on standard output.
    #[default]
    OneShot,
    /// It runs on: one JSON object a line for each request and each response.
    Lines,
}

/// What a tool can do at worst; what says nothing may do everything.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeclaredRisk {
    Read,
    Write,
    #[default]
    Execute,
}

/// An MCP server of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct ServerDeclaration {
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

impl CommandToolEntry {
    /// Returns the risk that the manifest declares.
    pub(super) fn risk(&self) -> Risk {
        let class = match self.risk {
            DeclaredRisk::Read => RiskClass::Read,
            DeclaredRisk::Write => RiskClass::Write,
            DeclaredRisk::Execute => RiskClass::Execute,
        };
        let mut risk = Risk::new(class);
        if self.destructive {
            risk = risk.destructive();
        }
        if self.idempotent {
            risk = risk.idempotent();
        }
        if self.open_world {
            risk = risk.open_world();
        }
        risk
    }

    /// Returns the time limit of a call.
    pub(super) fn time_limit(&self) -> Option<Duration> {
        self.timeout.map(Duration::from_secs_f64)
    }

    /// Returns the command as text, for people.
    pub(super) fn describe_command(&self) -> String {
        let words = self.command.iter().map(|word| quote_word(word));
        words.collect::<Vec<_>>().join(" ") + &describe_values(&self.env)
    }

    fn check(&self, package: &PackageContent) -> Result<(), ToolError> {
        let wrong = |why: &str| Err(invalid(FILE_NAME, format!("the tool `{}` {why}", self.name)));
        let Some(program) = self.command.first().filter(|program| !program.is_empty()) else {
            return wrong("has no `command`");
        };
        if program.contains('/') {
            let file = program.strip_prefix("./").unwrap_or(program);
            check_entry_name(file)?;
            match package.files.get(file) {
                Some(file) if file.is_executable || cfg!(not(unix)) => {}
                Some(_) => return wrong(&format!("runs `{file}`, which is not executable")),
                None => return wrong(&format!("runs `{file}`, which the plugin does not have")),
            }
        }
        if self.timeout.is_some_and(|seconds| !(0.001..=MAX_SECONDS).contains(&seconds)) {
            return wrong("has a `timeout` that is not between 0.001 and 3600 seconds");
        }
        if self.max_output.is_some_and(|bytes| !(1..=16 << 20).contains(&bytes)) {
            return wrong("has a `max_output` that is not between 1 and 16777216 bytes");
        }
        Ok(())
    }
}

fn empty_schema() -> Value {
    serde_json::json!({ "type": "object", "properties": {} })
}

/// The file `plugin.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestFile {
    name: String,
    version: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(rename = "author")]
    _author: Option<String>,
    #[serde(rename = "license")]
    _license: Option<String>,
    #[serde(rename = "homepage")]
    _homepage: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    tools: Vec<CommandToolEntry>,
}

/// The file `.claude-plugin/plugin.json`. Unknown fields have no effect in Claude Code either.
#[derive(Deserialize)]
struct ClaudeManifestFile {
    name: String,
    version: Option<String>,
    #[serde(default)]
    description: String,
    skills: Option<FileList>,
    agents: Option<FileList>,
    hooks: Option<Value>,
    #[serde(rename = "mcpServers")]
    servers: Option<Value>,
}

/// One path, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum FileList {
    One(String),
    Many(Vec<String>),
}

impl FileList {
    fn into_paths(self) -> Vec<String> {
        match self {
            Self::One(path) => vec![path],
            Self::Many(paths) => paths,
        }
    }
}

impl PluginManifest {
    /// Reads the manifest of a package.
    pub(super) fn read(package: &PackageContent) -> Result<Self, ToolError> {
        if let Some((name, what)) = package.refused.first() {
            let text = format_args!("the plugin has {what} at `{}`", name.escape_debug());
            return Err(ToolError::invalid_args(text).hint("a plugin has regular files only"));
        }
        let manifest = match package.files.get(FILE_NAME) {
            Some(file) => Self::read_own(file, package)?,
            None => Self::read_claude(package)?,
        };
        if !is_folder_name(&manifest.name) {
            let name: String = manifest.name.chars().take(100).collect();
            let text = format_args!("`{}` cannot be the name of a plugin", name.escape_debug());
            return Err(ToolError::invalid_args(text)
                .hint("a name has 1 to 64 of a-z, 0-9, `-`, `_` and `.`"));
        }
        Ok(manifest)
    }

    fn read_own(file: &PackageFile, package: &PackageContent) -> Result<Self, ToolError> {
        let text = text_of(file, FILE_NAME)?;
        let read: ManifestFile =
            toml::from_str(text).map_err(|error| invalid(FILE_NAME, error.to_string()))?;
        if read.tools.len() > MAX_TOOLS {
            return Err(invalid(FILE_NAME, format!("it has more than {MAX_TOOLS} tools")));
        }
        read.tools.iter().try_for_each(|tool| tool.check(package))?;
        let rules = read.rules.iter().map(|rule| read_rule(rule)).collect::<Result<_, _>>()?;
        let manifest = Self {
            name: read.name,
            version: read.version,
            description: read.description,
            tools: read.tools,
            rules,
            ..Self::default()
        };
        manifest.with_parts(package, None, None)
    }

    fn read_claude(package: &PackageContent) -> Result<Self, ToolError> {
        let file = package.files.get(CLAUDE_FILE_NAME).ok_or_else(|| {
            let text =
                format_args!("the source has neither `{FILE_NAME}` nor `{CLAUDE_FILE_NAME}`");
            ToolError::invalid_args(text).hint("name the folder of a plugin")
        })?;
        let read: ClaudeManifestFile = read_json(file, CLAUDE_FILE_NAME)?;
        let mut manifest = Self {
            name: read.name,
            version: read.version,
            description: read.description,
            ..Self::default()
        };
        for (named, folders) in
            [(read.skills, &mut manifest.skill_folders), (read.agents, &mut manifest.agent_folders)]
        {
            for path in named.map(FileList::into_paths).unwrap_or_default() {
                folders.push(inner_path(&path)?);
            }
        }
        for (folder, what) in
            [("commands/", "commands"), ("output-styles/", "output styles"), ("bin/", "programs")]
        {
            if package.files.keys().any(|name| name.starts_with(folder)) {
                manifest.notes.push(format!("its {what} in `{folder}` are not used"));
            }
        }
        if package.files.contains_key(".lsp.json") {
            manifest.notes.push("its language servers in `.lsp.json` are not used".to_owned());
        }
        manifest.with_parts(package, read.hooks, read.servers)
    }

    /// Adds what lies in the usual places, or in those that the manifest names.
    fn with_parts(
        mut self,
        package: &PackageContent,
        hooks: Option<Value>,
        servers: Option<Value>,
    ) -> Result<Self, ToolError> {
        for (folder, folders) in
            [("skills", &mut self.skill_folders), ("agents", &mut self.agent_folders)]
        {
            let start = format!("{folder}/");
            let is_there = package.files.keys().any(|name| name.starts_with(&start));
            if is_there && !folders.iter().any(|known| known == folder) {
                folders.insert(0, folder.to_owned());
            }
        }
        self.hooks = read_part(package, hooks, HOOKS_FILE)?;
        if let Some(hooks) = &mut self.hooks
            && remove_allows(hooks)
        {
            self.notes.push("`may_allow` of its hooks has no effect".to_owned());
        }
        self.check_hooks()?;
        if let Some(servers) = read_part(package, servers, SERVERS_FILE)? {
            let servers = match servers {
                Value::Object(mut all) => all.remove("mcpServers").unwrap_or(Value::Object(all)),
                other => other,
            };
            self.servers = serde_json::from_value(servers)
                .map_err(|error| invalid(SERVERS_FILE, error.to_string()))?;
        }
        for (name, server) in &self.servers {
            let reaches = [&server.command, &server.url].into_iter().flatten().count();
            if reaches != 1 || !is_folder_name(&name.to_lowercase()) {
                let text =
                    format!("the server `{name}` needs a plain name, and a command or a URL");
                return Err(invalid(SERVERS_FILE, text));
            }
        }
        Ok(self)
    }

    /// Notes the hooks that have no effect here. Fails when one of them should decide about calls.
    fn check_hooks(&mut self) -> Result<(), ToolError> {
        let Some(hooks) = &self.hooks else { return Ok(()) };
        let (_, errors) = ExternalHooks::from_value(hooks);
        if let Some(error) = errors.iter().find(|error| error.fatal) {
            return Err(invalid(HOOKS_FILE, error.to_string()));
        }
        self.notes.extend(errors.iter().map(|error| format!("its hooks: {error}")));
        Ok(())
    }

    /// Returns what the plugin brings, one line each, as it is shown before the plugin is enabled.
    pub(super) fn describe_contents(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for tool in &self.tools {
            let risk = tool.risk();
            let class = risk.class.as_str();
            let permission = tool.permission.as_deref().unwrap_or(&tool.name);
            let [name, permission] = [tool.name.as_str(), permission].map(escape_for_display);
            lines.push(format!(
                "tool `{name}` may {class} (permission `{permission}`), runs {}",
                tool.describe_command()
            ));
        }
        lines.extend(
            self.rules
                .iter()
                .map(|rule| format!("rule `{}`", escape_for_display(&rule.to_string()))),
        );
        lines.extend(self.hook_commands().into_iter().map(|line| format!("hook {line}")));
        for (name, server) in &self.servers {
            let reach = match (&server.command, &server.url) {
                (Some(command), _) => {
                    let words = [command].into_iter().chain(&server.args);
                    let words: Vec<_> = words.map(|word| quote_word(word)).collect();
                    format!("runs {}", words.join(" "))
                }
                (None, url) => format!("at {}", quote_word(url.as_deref().unwrap_or_default())),
            };
            let values = describe_values(&server.env) + &describe_values(&server.headers);
            lines.push(format!("MCP server `{name}` {reach}{values}"));
        }
        lines.extend(self.skill_folders.iter().map(|folder| format!("skills in `{folder}`")));
        lines.extend(self.agent_folders.iter().map(|folder| format!("agents in `{folder}`")));
        lines
    }

    /// Returns the words of all commands, which name the files that run.
    pub(super) fn command_texts(&self) -> Vec<String> {
        let tools = self.tools.iter().flat_map(|tool| tool.command.iter().cloned());
        let servers = self
            .servers
            .values()
            .flat_map(|server| server.command.iter().chain(&server.args).cloned());
        tools.chain(servers).chain(self.hook_commands()).collect()
    }

    /// Returns the commands of the hooks with their events, for people.
    fn hook_commands(&self) -> Vec<String> {
        let Some(hooks) = &self.hooks else { return Vec::new() };
        let events = hooks.get("hooks").unwrap_or(hooks).as_object();
        let of_event = |(event, groups): (&String, &Value)| {
            let groups = groups.as_array().cloned().unwrap_or_default();
            let entries = groups.into_iter().flat_map(|group| {
                group.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default()
            });
            let line = |entry: Value| {
                let command = entry.get("command").map(ToString::to_string).unwrap_or_default();
                format!("{event} runs {command}")
            };
            entries.map(line).collect::<Vec<_>>()
        };
        events.into_iter().flatten().flat_map(of_event).collect()
    }
}

/// Returns a word of a command as text: one with other characters than those of names and paths stands in
/// quotes, so that its ends and hidden characters are seen.
fn quote_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-${}?&#~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}

/// Returns variables or headers as text.
fn describe_values(values: &BTreeMap<String, String>) -> String {
    let describe = |(name, value): (&String, &String)| {
        format!(", with {}={}", quote_word(name), quote_word(value))
    };
    values.iter().map(describe).collect()
}

/// Reads a rule of a manifest, which may only tighten.
fn read_rule(text: &str) -> Result<Rule, ToolError> {
    let rule: Rule = text.parse().map_err(|error| {
        invalid(FILE_NAME, format!("the rule `{}`: {error}", text.escape_debug()))
    })?;
    if rule.action == Action::Allow {
        let text =
            format!("the rule `{rule}` allows something; only `deny` and `ask` are possible");
        return Err(invalid(FILE_NAME, text));
    }
    Ok(rule)
}

/// Returns a part that a manifest has inline, names by its path, or has in its usual place.
fn read_part(
    package: &PackageContent,
    declared: Option<Value>,
    usual: &str,
) -> Result<Option<Value>, ToolError> {
    let path = match declared {
        None => usual.to_owned(),
        Some(Value::String(path)) => inner_path(&path)?,
        Some(inline @ Value::Object(_)) => return Ok(Some(inline)),
        Some(_) => {
            return Err(invalid(CLAUDE_FILE_NAME, "expected a path or an object".to_owned()));
        }
    };
    match package.files.get(&path) {
        Some(file) => read_json(file, &path).map(Some),
        None if path == usual => Ok(None),
        None => Err(invalid(CLAUDE_FILE_NAME, format!("`{path}` is missing"))),
    }
}

/// Removes what would let hooks allow calls; returns whether there was something.
fn remove_allows(value: &mut Value) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().map(remove_allows).fold(false, |a, b| a | b),
        Value::Object(fields) => remove_allows_of(fields),
        _ => false,
    }
}

fn remove_allows_of(fields: &mut Map<String, Value>) -> bool {
    let had = fields.remove("may_allow").is_some();
    fields.values_mut().map(remove_allows).fold(had, |a, b| a | b)
}

/// Returns a path inside of the plugin, without the `./` and the `${CLAUDE_PLUGIN_ROOT}/` before it.
fn inner_path(path: &str) -> Result<String, ToolError> {
    let plain = path.strip_prefix("${CLAUDE_PLUGIN_ROOT}/").unwrap_or(path);
    let plain = plain.strip_prefix("./").unwrap_or(plain).trim_end_matches('/');
    check_entry_name(plain)?;
    Ok(plain.to_owned())
}

fn text_of<'f>(file: &'f PackageFile, name: &str) -> Result<&'f str, ToolError> {
    file.text().ok_or_else(|| invalid(name, "it is not a text in UTF-8".to_owned()))
}

fn read_json<T: for<'de> Deserialize<'de>>(file: &PackageFile, name: &str) -> Result<T, ToolError> {
    let text = text_of(file, name)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| invalid(name, error.to_string()))
}

fn invalid(file: &str, why: String) -> ToolError {
    ToolError::invalid_args(format_args!("`{file}` cannot be used: {}", why.trim_end()))
        .hint("the author of the plugin corrects the file; nothing of the plugin is used")
}
