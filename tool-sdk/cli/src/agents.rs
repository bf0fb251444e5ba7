//! The agents of the program, and the command `agents` that lists and shows them.

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use tool_sdk_agent::{AgentCatalog, AgentDefinition, AgentFolders};
use tool_sdk_core::ToolError;

use super::exit::{self, CommandError, Result};
use super::settings::Settings;
use super::{App, Io, args, style};

impl App {
    /// Returns the agents that there are: built in, of the program, of the user's files and
    /// configuration, of the first root, if the user trusts it, and of plugins.
    pub(super) fn agent_catalog(&self, settings: &Settings) -> AgentCatalog {
        let own =
            self.agents.iter().cloned().fold(AgentCatalog::built_in(), AgentCatalog::with_agent);
        let home = settings.home_dir.clone();
        let of_user = own.with_folders(&AgentFolders { home, trusted_project: None });
        let configured = settings
            .agents
            .iter()
            .map(|profile| AgentDefinition::new(profile.clone(), "An agent of the configuration"));
        let catalog = configured.fold(of_user, AgentCatalog::with_agent);
        let trusted_project = settings.roots.first().filter(|_| settings.is_project_trusted());
        let catalog = catalog
            .with_folders(&AgentFolders { home: None, trusted_project: trusted_project.cloned() });
        let plugins = self.found_plugins(settings);
        let folders = plugins.iter().flat_map(|scope| scope.agent_folders());
        folders.fold(catalog, |catalog, folder| catalog.with_plugin_folder(folder))
    }
}

impl Settings {
    /// Whether the user trusts the first root; not if that cannot be read.
    pub(super) fn is_project_trusted(&self) -> bool {
        let trusted = self.trusted_folders().zip(self.roots.first());
        trusted.is_some_and(|(trusted, root)| trusted.is_trusted(root).unwrap_or(false))
    }

    /// Says that agents of the first root do not count, if there are some.
    pub(super) fn waiting_agents_note(&self) -> Option<String> {
        let root = self.roots.first().filter(|_| !self.is_project_trusted())?;
        let folders = AgentFolders { home: None, trusted_project: Some(root.clone()) };
        let waiting = AgentCatalog::default().with_folders(&folders).agents().count();
        let agents = if waiting == 1 { "1 agent" } else { &*format!("{waiting} agents") };
        (waiting > 0).then(|| {
            format!("{agents} of {} wait until the folder is trusted: see `trust`", root.display())
        })
    }
}

/// Builds the clap command `agents list | show NAME`.
pub(super) fn build_command() -> Command {
    let list = Command::new("list")
        .about("List the agents that `--agent` and other agents can name")
        .arg(args::json_flag("Print a JSON array"));
    let show = Command::new("show")
        .about("Show one agent: its prompt, tools, rules and limits")
        .arg(Arg::new(args::NAME).value_name("NAME").required(true).help("The agent"))
        .arg(args::json_flag("Print a JSON object"));
    args::with_globals(
        Command::new("agents")
            .about("List and show the agents: built in, of the user, of the project")
            .arg_required_else_help(true)
            .subcommand_required(true)
            .subcommands([list, show].map(args::with_globals)),
    )
}

/// Runs `agents`.
pub(super) fn run(app: &App, settings: &Settings, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let catalog = app.agent_catalog(settings);
    let code = match matches.subcommand() {
        Some(("show", sub)) => show(&catalog, sub, io)?,
        Some((_, sub)) => list(&catalog, sub, io)?,
        None => return Err(CommandError::usage("`list` or `show NAME` is missing")),
    };
    for problem in catalog.problems() {
        io.print_stderr(style::sanitize_text(&format!("warning: {problem}")));
    }
    if let Some(note) = settings.waiting_agents_note() {
        io.print_stderr(style::sanitize_text(&format!("hint: {note}")));
    }
    Ok(code)
}

fn list(catalog: &AgentCatalog, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    if matches.get_flag(args::JSON) {
        let entries: Vec<Value> = catalog.agents().map(to_json).collect();
        writeln!(io.stdout, "{:#}", Value::from(entries))?;
        return Ok(0);
    }
    let width = catalog.names().map(str::len).max().unwrap_or_default();
    for agent in catalog.agents() {
        let (name, origin) = (agent.name(), agent.origin.as_str());
        let line = format!("{name:width$}  {origin:8}  {}", agent.description);
        writeln!(io.stdout, "{}", style::sanitize_text(&line))?;
    }
    Ok(0)
}

fn show(catalog: &AgentCatalog, matches: &ArgMatches, io: &mut Io<'_>) -> Result {
    let name = matches.get_one::<String>(args::NAME).map(String::as_str).unwrap_or_default();
    let Some(agent) = catalog.get(name) else {
        let known = catalog.names().collect::<Vec<_>>().join(", ");
        let message = format!("there is no agent `{}`", name.escape_debug());
        return Err(CommandError::new(exit::USAGE, ToolError::not_found(message))
            .hint(format_args!("the agents are {known}")));
    };
    let value = to_json(agent);
    if matches.get_flag(args::JSON) {
        writeln!(io.stdout, "{value:#}")?;
        return Ok(0);
    }
    for (field, value) in value.as_object().into_iter().flatten().filter(|it| it.0 != "prompt") {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(io.stdout, "{}", style::sanitize_text(&format!("{field:12} {text}")))?;
    }
    if !agent.prompt.is_empty() {
        writeln!(io.stdout, "\n{}", style::sanitize_text(&agent.prompt))?;
    }
    Ok(0)
}

/// Returns the agent as an object; what is not set is left out.
fn to_json(agent: &AgentDefinition) -> Value {
    let (profile, limits) = (&agent.profile, &agent.limits);
    let rules: Vec<String> = profile.rules.iter().map(ToString::to_string).collect();
    let mut value = json!({
        "name": agent.name(),
        "description": agent.description,
        "origin": agent.origin.as_str(),
        "file": agent.origin.path(),
        "usage": agent.usage.as_str(),
        "model": agent.model,
        "mode": profile.mode,
        "tools": profile.only,
        "without": profile.without,
        "rules": rules,
        "rules_only_tighten": profile.only_tightens,
        "max_turns": agent.max_turns,
        "max_tokens": limits.max_tokens,
        "max_cost": limits.max_cost,
        "max_calls": limits.max_calls,
        "max_seconds": limits.max_duration.map(|max| max.as_secs()),
        "notes": agent.notes,
        "prompt": agent.prompt,
    });
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null() && *value != json!([]) && *value != json!(""));
    }
    value
}

#[cfg(test)]
mod tests {
    use crate::test_support::TestCli;

    // F104: an agent of an untrusted folder does not exist.
    #[test]
    fn agents_of_a_project_wait_for_trust() {
        let cli = TestCli::default();
        let state = tempfile::tempdir().unwrap();
        let state = ["--state-dir", state.path().to_str().unwrap()];
        let run = |args: &[&str]| cli.run(&[args, &state].concat());
        let call_as = |agent: &str| run(&["call", "echo", "--text", "x", "--agent", agent]);
        cli.write_text(
            ".agents/review.md",
            "---\ndescription: Reviews\nrules: ['deny echo']\nfoo: 1\n---\nLook.\n",
        );
        cli.write_text(".agents/bad.md", "---\nname: bad\n---\n");
        cli.write_text(".agents/free.md", "---\ndescription: Free\nmode: bypass\n---\n");
        cli.write_text(".agents/agents/lost.md", "---\ndescription: Lost\n---\n");
        let listed = run(&["agents", "list"]);
        assert!(listed.code == 0 && listed.out.contains("explore  built-in"), "{}", listed.out);
        assert!(
            !listed.out.contains("review") && listed.err.contains("2 agents of"),
            "{}",
            listed.err
        );
        assert!(call_as("review").err.contains("there is no agent `review`"));

        assert_eq!(run(&["trust", "--yes"]).code, 0);
        let listed = run(&["agents", "list"]);
        assert!(listed.out.contains("review   project   Reviews"), "{}", listed.out);
        assert!(listed.err.contains("bad.md: `description` is missing"), "{}", listed.err);
        assert!(listed.err.contains("agents are files `.agents/NAME.md`"), "{}", listed.err);
        let free = run(&["agents", "show", "free"]).out;
        assert!(free.contains("`mode: bypass` has no effect"), "{free}");
        let shown = run(&["agents", "show", "review"]);
        assert!(shown.out.contains("`foo` has no effect here") && shown.out.ends_with("\nLook.\n"));
        let (denied, ran) = (call_as("review"), call_as("plan"));
        assert_eq!((denied.code, ran.code), (3, 0), "{} {}", denied.err, ran.err);
        assert_eq!(run(&["agents", "show", "unheard-of"]).code, 2);
    }
}
