//! Who is looking, as the options say.

use clap::ArgMatches;

use super::{Io, grammar, style};
use crate::context::{Client, Session};
use crate::toolset::Toolset;

/// The tools as those see them whom the options name.
pub(super) fn of(tools: Toolset, matches: &ArgMatches, io: &mut Io<'_>) -> Toolset {
    let option = |name: &str| matches.get_one::<String>(name).cloned();
    let mut session = Session::new("cli").with_client(Client::Cli);
    if let Some(model) = option(grammar::MODEL) {
        session = session.with_model(model);
    }
    if let Some(agent) = option(grammar::AGENT) {
        if !tools.has_agent(&agent) {
            let agent = style::plain(&agent);
            io.say(format_args!("warning: there is no agent `{agent}`; it has what all have"));
        }
        session = session.with_agent(agent);
    }
    let tools = tools.for_session(&session);
    match option(grammar::SCOPE) {
        Some(scope) => tools.with_scope(scope),
        None => tools,
    }
}

#[cfg(test)]
mod tests {
    use clap::ArgMatches;
    use serde_json::{Value, json};

    use super::super::{Io, exit, grammar, list, schema, show, toy};
    use crate::context::Context;
    use crate::permission::{Action, Rule};
    use crate::registry::Registry;
    use crate::tool::{Definition, DynamicTool};
    use crate::toolset::{AgentProfile, ModelProfile, Toolset};

    fn tool(definition: Definition) -> DynamicTool {
        DynamicTool::new(definition, |_: Value, _: Context| async { "done" })
    }

    /// Toys, one of them in a scope, with an agent and two families of models.
    fn shelf() -> Toolset {
        let [mut vault, ball, kite, drum] = ["vault", "ball", "kite", "drum"]
            .map(|name| toy::definition(name, json!({"colour": {"type": "string"}})));
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

    /// Runs one command on the shelf.
    fn run(tools: Toolset, args: &[&str]) -> (exit::Result, String) {
        let mut out = Vec::new();
        let (mut stdin, mut err) = (std::io::empty(), Vec::new());
        let mut io = Io::new(&mut stdin, &mut out, &mut err);
        let matches = grammar::command("toy").try_get_matches_from(args).unwrap();
        let (command, matches): (&str, &ArgMatches) = matches.subcommand().unwrap();
        let result = match command {
            "list" => list::run(tools, matches, &mut io),
            "show" => show::run("toy", tools, matches, &mut io),
            _ => schema::run("toy", tools, matches, &mut io),
        };
        (result, String::from_utf8(out).unwrap())
    }

    #[track_caller]
    fn check(options: &[&str], expected: &[&str]) {
        for command in [&["list", "--json"][..], &["schema", "--format", "anthropic"]] {
            let (result, out) = run(shelf(), &[command, options].concat());
            assert_eq!(result.ok(), Some(0), "{options:?}");
            let tools: Vec<Value> = serde_json::from_str(&out).unwrap();
            let names: Vec<&str> =
                tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(names, expected, "{command:?} {options:?}");
        }
    }

    // F101: the lists are those that this audience has.
    #[test]
    fn a_listing_is_what_the_named_audience_has() {
        check(&[], &["ball", "drum", "kite"]);
        check(&["--scope", "keeper"], &["ball", "drum", "kite", "vault"]);
        check(&["--model", "bird-1"], &["drum", "kite"]);
        check(&["--agent", "outdoors"], &["ball", "kite", "vault"]);
        check(&["--agent", "outdoors", "--model", "bird-1"], &["kite", "vault"]);
        check(&["--agent", "unheard-of"], &["ball", "drum", "kite"]);
    }

    // F103
    #[test]
    fn a_page_and_a_schema_say_what_the_model_is_told() {
        for command in [&["show", "kite", "--json"][..], &["schema", "kite"]] {
            let (_, all) = run(shelf(), command);
            let (_, small) = run(shelf(), &[command, &["--model", "x-mini"]].concat());
            assert!(all.contains("colour") && !small.contains("colour"), "{command:?}");
        }
    }

    #[test]
    fn what_an_audience_does_not_have_cannot_be_shown() {
        for args in [
            &["show", "vault"][..],
            &["show", "drum", "--agent", "outdoors"],
            &["schema", "ball", "--model", "bird-1"],
        ] {
            let (result, _) = run(shelf(), args);
            let (code, error) = result.err().and_then(|failure| failure.into_error().ok()).unwrap();
            assert_eq!(code, exit::USAGE, "{args:?}: {}", error.message());
        }
        assert_eq!(run(shelf(), &["show", "vault", "--scope", "keeper"]).0.ok(), Some(0));
    }
}
