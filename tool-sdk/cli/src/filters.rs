//! The tools that listings show: those of `--tools FILE`, filtered by `--scope`, `--model` and
//! `--agent`.

use std::fs::File;
use std::path::Path;

use clap::ArgMatches;
use serde_json::Value;
use tool_sdk_core::{
    ClientKind, Context, Output, Registry, Session, ToolError, ToolsFile, Toolset,
};

use super::exit::{CommandError, Result};
use super::{Io, args, input, style};

/// The limit of a file with definitions in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Reads the definitions of a `tools.json`. They are shown, and none can be called.
pub(super) fn read_tools_file(path: &Path, io: &Io<'_>) -> Result<Toolset> {
    let name = path.display().to_string();
    let mut file = File::open(io.resolve_path(path))
        .map_err(|error| CommandError::usage(format_args!("cannot open `{name}`: {error}")))?;
    let text = input::read_text(&mut file, &format!("`{name}`"), MAX_BYTES)?;
    let mut tools = ToolsFile::parse(&*name, &text).map_err(CommandError::config)?;
    let names: Vec<String> = tools.definitions().map(|tool| tool.name.to_string()).collect();
    for name in names {
        tools = tools.bind(&name, |_: Value, _: Context| async {
            Err::<Output, _>(ToolError::unavailable("a definition of a file has no function"))
        });
    }
    let registry = Registry::builder().add(tools.finish().map_err(CommandError::config)?);
    Ok(Toolset::new(registry.build().map_err(CommandError::config)?))
}

/// Returns the tools that the scope, model and agent of the options can see.
pub(super) fn filter_toolset(tools: Toolset, matches: &ArgMatches, io: &mut Io<'_>) -> Toolset {
    let option = |name: &str| matches.get_one::<String>(name).cloned();
    let mut session = Session::new("cli").with_client(ClientKind::Cli);
    if let Some(model) = option(args::MODEL) {
        session = session.with_model(model);
    }
    if let Some(agent) = option(args::AGENT) {
        if !tools.has_agent(&agent) {
            let agent = style::sanitize_text(&agent);
            io.print_stderr(format_args!(
                "warning: unknown agent `{agent}`; showing the tools of all agents"
            ));
        }
        session = session.with_agent(agent);
    }
    let tools = tools.for_session(&session);
    match option(args::SCOPE) {
        Some(scope) => tools.with_scope(scope),
        None => tools,
    }
}

#[cfg(test)]
mod tests {
    use clap::ArgMatches;
    use serde_json::{Value, json};
    use tool_sdk_core::{
        Action, AgentProfile, Context, Definition, DynamicTool, ModelProfile, Registry, Rule,
        Toolset,
    };

    use crate::{Io, args, exit, list, schema, show, test_support};

    fn tool(definition: Definition) -> DynamicTool {
        DynamicTool::new(definition, |_: Value, _: Context| async { "done" })
    }

    /// Four tools, one of them in a scope, with an agent and two model profiles.
    fn sample_toolset() -> Toolset {
        let [mut vault, ball, kite, drum] = ["vault", "ball", "kite", "drum"]
            .map(|name| test_support::make_definition(name, json!({"colour": {"type": "string"}})));
        vault.scopes = vec!["keeper".into()];
        let registry = Registry::builder()
            .add(tool(vault))
            .add(tool(ball))
            .add(tool(kite))
            .add(tool(drum))
            .build()
            .unwrap();
        Toolset::new(registry)
            .with_agent(AgentProfile::new("outdoors").without(["drum"]).scope("keeper"))
            .with_profile(ModelProfile::new(["bird-*"]).prefer("kite", ["ball"]))
            .with_profile(ModelProfile::new(["*-mini"]).without_optional("*"))
            .with_rules([Rule::parse(Action::Deny, "drum(loud)").unwrap()])
    }

    /// Runs one command on the sample toolset.
    fn run(tools: Toolset, args: &[&str]) -> (exit::Result, String) {
        let mut out = Vec::new();
        let (mut stdin, mut err) = (std::io::empty(), Vec::new());
        let mut io = Io::new(&mut stdin, &mut out, &mut err);
        let matches = args::program_command("toy").try_get_matches_from(args).unwrap();
        let (command, matches): (&str, &ArgMatches) = matches.subcommand().unwrap();
        let result = match command {
            "list" => list::run(tools, matches, &mut io),
            "show" => show::run("toy", tools, matches, &mut io),
            _ => schema::run(&crate::App::new(Registry::default()), "toy", tools, matches, &mut io),
        };
        (result, String::from_utf8(out).unwrap())
    }

    #[track_caller]
    fn check(options: &[&str], expected: &[&str]) {
        for command in [&["list", "--json"][..], &["schema", "--format", "anthropic"]] {
            let (result, out) = run(sample_toolset(), &[command, options].concat());
            assert_eq!(result.ok(), Some(0), "{options:?}");
            let tools: Vec<Value> = serde_json::from_str(&out).unwrap();
            let names: Vec<&str> =
                tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(names, expected, "{command:?} {options:?}");
        }
    }

    // F101
    #[test]
    fn listings_are_filtered_by_scope_model_and_agent() {
        check(&[], &["ball", "drum", "kite"]);
        check(&["--scope", "keeper"], &["ball", "drum", "kite", "vault"]);
        check(&["--model", "bird-1"], &["drum", "kite"]);
        check(&["--agent", "outdoors"], &["ball", "kite", "vault"]);
        check(&["--agent", "outdoors", "--model", "bird-1"], &["kite", "vault"]);
        check(&["--agent", "unheard-of"], &["ball", "drum", "kite"]);
    }

    // F103
    #[test]
    fn show_and_schema_use_the_definition_for_the_model() {
        for command in [&["show", "kite", "--json"][..], &["schema", "kite"]] {
            let (_, all) = run(sample_toolset(), command);
            let (_, small) = run(sample_toolset(), &[command, &["--model", "x-mini"]].concat());
            assert!(all.contains("colour") && !small.contains("colour"), "{command:?}");
        }
    }

    #[test]
    fn a_filtered_tool_cannot_be_shown() {
        for args in [
            &["show", "vault"][..],
            &["show", "drum", "--agent", "outdoors"],
            &["schema", "ball", "--model", "bird-1"],
        ] {
            let (result, _) = run(sample_toolset(), args);
            let (code, error) =
                result.err().and_then(|failure| failure.into_tool_error().ok()).unwrap();
            assert_eq!(code, exit::USAGE, "{args:?}: {}", error.message());
        }
        assert_eq!(run(sample_toolset(), &["show", "vault", "--scope", "keeper"]).0.ok(), Some(0));
    }
}
