//! The formats of agent files: Markdown with frontmatter, whose text is the prompt.
//!
//! `.agents/NAME.md` is the own format. The files of Claude Code and OpenCode are read as far as
//! their fields mean something here; the rest is noted, never silently dropped.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tool_sdk_core::{AgentProfile, Frontmatter, InvalidFrontmatter, Mode, Rule, RuleScope};

use super::definition::{AgentDefinition, AgentUsage};

/// A file that defines no agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAgentFile {
    /// The frontmatter is wrong.
    #[error(transparent)]
    Frontmatter(#[from] InvalidFrontmatter),
    /// A field has a wrong value.
    #[error("`{field}`: {reason}")]
    Field {
        /// The field.
        field: String,
        /// What is wrong, or what must be there.
        reason: String,
    },
    /// The description is missing; models and users need it to choose the agent.
    #[error("`description` is missing: one line that says when to use the agent")]
    NoDescription,
    /// The file is too large, or cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Whose format a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentFileFormat {
    Own,
    ClaudeCode,
    OpenCode,
}

/// Parses a file; `None` when it has no frontmatter, as a README beside the agents.
pub(super) fn parse_agent_file(
    text: &str,
    stem: &str,
    format: AgentFileFormat,
) -> Result<Option<AgentDefinition>, InvalidAgentFile> {
    let Some(file) = Frontmatter::<Map<String, Value>>::parse(text)? else { return Ok(None) };
    let mut fields = AgentFields { fields: file.fields };
    let name = fields.take_field::<String>("name")?.unwrap_or_else(|| stem.to_owned());
    check_name(&name)?;
    let description = fields.take_field::<String>("description")?.unwrap_or_default();
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if description.is_empty() {
        return Err(InvalidAgentFile::NoDescription);
    }
    let mut agent = AgentDefinition::new(AgentProfile::new(name), description);
    agent.model = fields.take_field::<String>("model")?.filter(|model| model != "inherit");
    agent.prompt = file.body.trim_end().to_owned();
    match format {
        AgentFileFormat::Own => read_own_fields(&mut agent, &mut fields)?,
        AgentFileFormat::ClaudeCode => read_claude_fields(&mut agent, &mut fields)?,
        AgentFileFormat::OpenCode => read_opencode_fields(&mut agent, &mut fields)?,
    }
    agent.notes.extend(fields.fields.keys().map(|field| format!("`{field}` has no effect here")));
    Ok(Some(agent))
}

/// Names stand in rules, in the schema of tools and in file names.
fn check_name(name: &str) -> Result<(), InvalidAgentFile> {
    let is_fine = !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let reason = "must be 1 to 64 letters, digits, `-` and `_`";
    if is_fine { Ok(()) } else { Err(wrong_field("name", reason)) }
}

fn wrong_field(field: &str, reason: impl ToString) -> InvalidAgentFile {
    InvalidAgentFile::Field { field: field.to_owned(), reason: reason.to_string() }
}

/// The fields that were not read yet.
struct AgentFields {
    fields: Map<String, Value>,
}

impl AgentFields {
    fn take_field<T: DeserializeOwned>(
        &mut self,
        field: &str,
    ) -> Result<Option<T>, InvalidAgentFile> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                serde_json::from_value(value).map(Some).map_err(|it| wrong_field(field, it))
            }
        }
    }

    /// Takes a list of words, or a text of words with commas between them.
    fn take_words(&mut self, field: &str) -> Result<Option<Vec<String>>, InvalidAgentFile> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WordList {
            Text(String),
            List(Vec<String>),
        }
        Ok(self.take_field::<WordList>(field)?.map(|words| match words {
            WordList::List(words) => words,
            WordList::Text(text) => text
                .split(',')
                .map(|word| word.trim().to_owned())
                .filter(|it| !it.is_empty())
                .collect(),
        }))
    }

    fn take_mode(&mut self, field: &str) -> Result<Option<Mode>, InvalidAgentFile> {
        let mode = self.take_field::<String>(field)?;
        mode.map(|mode| mode.parse().map_err(|error| wrong_field(field, error))).transpose()
    }
}

/// The limits in the own format.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AgentFileLimits {
    turns: Option<u32>,
    tokens: Option<u64>,
    cost: Option<f64>,
    calls: Option<u64>,
    minutes: Option<u32>,
}

fn read_own_fields(
    agent: &mut AgentDefinition,
    fields: &mut AgentFields,
) -> Result<(), InvalidAgentFile> {
    agent.profile.only = fields.take_words("tools")?;
    agent.profile.without = fields.take_words("without")?.unwrap_or_default();
    agent.profile.mode = fields.take_mode("mode")?;
    if agent.profile.mode == Some(Mode::Bypass) {
        let note =
            "`mode: bypass` has no effect: a mode counts where it is stricter than the settings";
        agent.notes.push(note.to_owned());
    }
    for rule in fields.take_field::<Vec<String>>("rules")?.unwrap_or_default() {
        let parsed: Rule = rule.parse().map_err(|error| wrong_field("rules", error))?;
        agent.profile.rules.push(parsed.scope(RuleScope::Agent));
    }
    agent.usage = match fields.take_field::<String>("usage")?.as_deref() {
        None | Some("any") => AgentUsage::Any,
        Some("primary") => AgentUsage::Primary,
        Some("subagent") => AgentUsage::Subagent,
        Some(_) => return Err(wrong_field("usage", "must be any, primary or subagent")),
    };
    let effort = fields.take_field::<String>("reasoning")?.map(|effort| effort.parse()).transpose();
    agent.reasoning_effort = effort.map_err(|error| wrong_field("reasoning", error))?;
    let limits: AgentFileLimits = fields.take_field("limits")?.unwrap_or_default();
    agent.max_turns = limits.turns;
    agent.limits.max_tokens = limits.tokens;
    agent.limits.max_cost = limits.cost;
    agent.limits.max_calls = limits.calls;
    agent.limits.max_duration =
        limits.minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
    Ok(())
}

/// Reads the fields of Claude Code: lists of tools, and the modes that only make calls stricter.
fn read_claude_fields(
    agent: &mut AgentDefinition,
    fields: &mut AgentFields,
) -> Result<(), InvalidAgentFile> {
    let mut pattern_notes = Vec::new();
    let mut names = |words: Vec<String>| -> Vec<String> {
        let name = |word: String| match word.split_once('(') {
            Some((name, _)) => {
                pattern_notes.push(format!("`{word}` counts as `{name}`"));
                name.to_owned()
            }
            None => word,
        };
        words.into_iter().map(name).collect()
    };
    agent.profile.only = fields.take_words("tools")?.map(&mut names);
    agent.profile.without =
        fields.take_words("disallowedTools")?.map(&mut names).unwrap_or_default();
    agent.notes.extend(pattern_notes);
    match fields.take_field::<String>("permissionMode")?.as_deref() {
        Some("plan") => agent.profile.mode = Some(Mode::Plan),
        Some(other) if other != "default" => {
            agent.notes.push(format!("the permission mode `{other}` has no effect here"));
        }
        _ => {}
    }
    agent.max_turns = fields.take_field("maxTurns")?;
    // A model of Claude Code's own names, and how the file looks in its lists.
    if let Some(model) = agent.model.take_if(|model| !model.contains(['/', '-'])) {
        agent.notes.push(format!("the model `{model}` has no effect here; write PROVIDER/NAME"));
    }
    let _: Option<Value> = fields.take_field("color")?;
    Ok(())
}

/// Reads the fields of OpenCode: tools that are switched off, permissions, and who starts it.
fn read_opencode_fields(
    agent: &mut AgentDefinition,
    fields: &mut AgentFields,
) -> Result<(), InvalidAgentFile> {
    agent.usage = match fields.take_field::<String>("mode")?.as_deref() {
        Some("primary") => AgentUsage::Primary,
        Some("subagent") => AgentUsage::Subagent,
        _ => AgentUsage::Any,
    };
    agent.max_turns = fields.take_field("steps")?;
    let tools: Map<String, Value> = fields.take_field("tools")?.unwrap_or_default();
    let is_off = |(_, on): &(String, Value)| *on == Value::Bool(false);
    agent.profile.without = tools.into_iter().filter(is_off).map(|(tool, _)| tool).collect();
    let permission: Map<String, Value> = fields.take_field("permission")?.unwrap_or_default();
    for (permission, value) in permission {
        for rule in opencode_rules(&permission, value) {
            let parsed: Rule = rule.parse().map_err(|error| wrong_field("permission", error))?;
            agent.profile.rules.push(parsed.scope(RuleScope::Agent));
        }
    }
    if let Some(prompt) = fields.take_field::<String>("prompt")?.filter(|_| agent.prompt.is_empty())
    {
        agent.prompt = prompt;
    }
    for field in ["color", "hidden"] {
        let _: Option<Value> = fields.take_field(field)?;
    }
    Ok(())
}

/// Returns the rules of one permission: an action, or actions by pattern.
fn opencode_rules(permission: &str, value: Value) -> Vec<String> {
    match value {
        Value::String(action) => vec![format!("{action} {permission}")],
        Value::Object(patterns) => patterns
            .into_iter()
            .map(|(pattern, action)| {
                format!("{} {permission}({pattern})", action.as_str().unwrap_or_default())
            })
            .collect(),
        other => vec![other.to_string()],
    }
}

/// Returns the stem of an agent's file.
pub(super) fn agent_file_stem(path: &Path) -> Option<&str> {
    let is_markdown = path.extension().is_some_and(|extension| extension == "md");
    path.file_stem().filter(|_| is_markdown).and_then(|stem| stem.to_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parse(text: &str, format: AgentFileFormat) -> AgentDefinition {
        parse_agent_file(text, "stem", format).unwrap().unwrap()
    }

    #[track_caller]
    fn error(text: &str) -> String {
        parse_agent_file(text, "stem", AgentFileFormat::Own).unwrap_err().to_string()
    }

    #[test]
    fn the_own_format_has_every_field() {
        let agent = parse(
            "---\nname: review\ndescription: Use when: a change\n  is done\nmodel: anthropic/claude-x\n\
             tools: [read, 'category:search']\nwithout: bash, write\nmode: plan\n\
             rules: ['deny read(secrets/**)']\nusage: subagent\nreasoning: low\n\
             limits: { turns: 5, tokens: 1000, cost: 0.5, calls: 9, minutes: 2 }\nnonsense: 1\n---\n\
             Look closely.\n",
            AgentFileFormat::Own,
        );
        assert_eq!((agent.name(), &*agent.prompt), ("review", "Look closely."));
        assert_eq!(agent.description, "Use when: a change is done");
        assert_eq!(agent.profile.only.unwrap(), ["read", "category:search"]);
        assert_eq!(agent.profile.without, ["bash", "write"]);
        assert_eq!(agent.profile.mode, Some(Mode::Plan));
        assert_eq!(agent.profile.rules[0].to_string(), "deny read(secrets/**)");
        assert_eq!((agent.usage, agent.max_turns), (AgentUsage::Subagent, Some(5)));
        assert_eq!(agent.limits.max_duration, Some(Duration::from_secs(120)));
        assert_eq!(agent.notes, ["`nonsense` has no effect here"]);
    }

    #[test]
    fn files_of_other_programs_are_read_as_far_as_they_go() {
        let agent = parse(
            "---\nname: tester\ndescription: Runs tests\ntools: Read, Bash(cargo *)\nmodel: sonnet\n\
             permissionMode: bypassPermissions\nmaxTurns: 7\ncolor: red\nhooks: {}\n---\nTest.\n",
            AgentFileFormat::ClaudeCode,
        );
        assert_eq!(agent.profile.only.unwrap(), ["Read", "Bash"]);
        assert_eq!((agent.max_turns, agent.model, agent.profile.mode), (Some(7), None, None));
        let noted = |what: &str| agent.notes.iter().any(|note| note.contains(what));
        assert!(noted("bypassPermissions") && noted("cargo *") && noted("sonnet"));
        assert!(noted("`hooks`") && agent.notes.len() == 4, "{:?}", agent.notes);

        let agent = parse(
            "---\ndescription: Docs\nmode: subagent\nmodel: anthropic/x\ntools:\n  write: false\n  \
             edit: true\npermission:\n  edit: deny\n  bash:\n    'git *': allow\n---\nWrite docs.\n",
            AgentFileFormat::OpenCode,
        );
        assert_eq!((agent.name(), agent.usage), ("stem", AgentUsage::Subagent));
        assert_eq!(agent.profile.without, ["write"]);
        let rules: Vec<String> = agent.profile.rules.iter().map(ToString::to_string).collect();
        assert_eq!(rules, ["deny edit", "allow bash(git *)"]);
    }

    #[test]
    fn mistakes_name_the_field() {
        assert!(parse_agent_file("# Agents\n", "README", AgentFileFormat::Own).unwrap().is_none());
        assert!(error("---\nname: x\n---\n").contains("`description` is missing"));
        assert!(error("---\nname: a b\ndescription: x\n---\n").starts_with("`name`"));
        assert!(error("---\ndescription: x\nmode: fast\n---\n").starts_with("`mode`"));
        assert!(error("---\ndescription: x\nrules: ['maybe x']\n---\n").starts_with("`rules`"));
        assert!(error("---\ndescription: x\nlimits: { tuns: 1 }\n---\n").contains("tuns"));
        assert!(error("---\ndescription: x\ntools: { a: 1 }\n---\n").starts_with("`tools`"));
    }
}
