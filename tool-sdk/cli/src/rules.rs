//! The command `rules`: lists the permission rules that apply, in the order of their evaluation.

use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser};
use serde_json::{Value, json};
use tool_sdk_core::{Rule, RuleScope, Toolset};

use super::exit::{CommandError, Result};
use super::settings::Settings;
use super::{Io, args, state_store, style};

/// The scopes in the order of evaluation.
const SCOPES: [RuleScope; 4] =
    [RuleScope::Default, RuleScope::User, RuleScope::Agent, RuleScope::Session];

/// A rule, and the agent for whose calls alone it applies.
type ListedRule = (Rule, Option<String>);

/// Builds the clap command `rules list [--scope S] [--json]`.
pub(super) fn build_command() -> Command {
    let scope = Arg::new(args::SCOPE)
        .long(args::SCOPE)
        .value_name("S")
        .value_parser(PossibleValuesParser::new(SCOPES.map(|scope| scope.to_string())))
        .help("Only rules of this scope");
    Command::new("rules")
        .about("List the permission rules that apply")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .subcommand(args::with_globals(
            Command::new("list")
                .about("List the rules by scope; the last one that matches decides")
                .args([scope, args::json_flag("Print a JSON array")]),
        ))
}

/// Runs `rules`. `tools` has the rules of the program and of the settings.
pub(super) fn run(
    settings: &Settings,
    tools: &Toolset,
    matches: &ArgMatches,
    io: &mut Io<'_>,
) -> Result {
    let Some((_, matches)) = matches.subcommand() else {
        return Err(CommandError::usage("`list` is missing"));
    };
    if let Some(note) = state_store::plan_mode_note(settings) {
        io.print_stderr(style::sanitize_text(&format!("note: plan mode is {note}")));
    }
    let wanted = matches.get_one::<String>(args::SCOPE);
    let rules = applicable_rules(tools);
    let of_scope = |scope: RuleScope| rules.iter().filter(move |(rule, _)| rule.scope == scope);
    let scopes = SCOPES.into_iter().filter(|it| wanted.is_none_or(|name| *name == it.to_string()));
    if matches.get_flag(args::JSON) {
        let rules: Vec<Value> = scopes.flat_map(of_scope).map(rule_json).collect();
        writeln!(io.stdout, "{:#}", Value::from(rules))?;
        return Ok(0);
    }
    let style = style::TextStyle::for_stdout(io);
    let mut is_empty = true;
    for scope in scopes {
        let mut rules = of_scope(scope).peekable();
        if rules.peek().is_some() {
            writeln!(io.stdout, "{}", style.bold(&scope.to_string()))?;
            is_empty = false;
        }
        for rule in rules {
            writeln!(io.stdout, "  {}", style::sanitize_text(&rule_line(rule)))?;
        }
    }
    if is_empty {
        io.print_stderr("no rules apply; the mode decides");
    }
    Ok(0)
}

/// Returns the rules for every call, then those of each agent, and those of plugins.
fn applicable_rules(tools: &Toolset) -> Vec<ListedRule> {
    let mut rules: Vec<ListedRule> = Vec::new();
    for (agent, view) in tools.agent_views() {
        for rule in view.rules().rules() {
            // Rules for every call are part of the view of each agent, too.
            if !rules.iter().any(|(known, of)| known == rule && (of.is_none() || *of == agent)) {
                rules.push((rule.clone(), agent.clone()));
            }
        }
    }
    for plugin in tools.plugins() {
        // They decide as rules of the session, behind all others.
        let rule = |rule: &Rule| rule.clone().scope(RuleScope::Session);
        rules.extend(plugin.rules().iter().map(|known| (rule(known), None)));
    }
    rules
}

fn rule_line((rule, agent): &ListedRule) -> String {
    let agent = agent.as_ref().map(|agent| format!("  for agent {agent}")).unwrap_or_default();
    let locked = if rule.locked { "  locked" } else { "" };
    let origin = match rule.origin.as_str() {
        "" => String::new(),
        origin => format!("  ({origin})"),
    };
    format!("{rule}{agent}{locked}{origin}").replace('\n', " ")
}

fn rule_json((rule, agent): &ListedRule) -> Value {
    json!({
        "permission": rule.permission.as_str(),
        "pattern": rule.pattern.as_str(),
        "argument": rule.argument,
        "action": rule.action,
        "scope": rule.scope.to_string(),
        "locked": rule.locked,
        "origin": rule.origin,
        "agent": agent,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tool_sdk_core::{Plugin, PluginRegistrar, ToolError};

    use crate::App;
    use crate::test_support::{TestCli, test_registry};

    /// A plugin with one rule.
    struct CarefulPlugin;

    impl Plugin for CarefulPlugin {
        fn id(&self) -> &str {
            "careful"
        }

        fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
            registrar.add_rules(["deny echo(text: secret)".parse().map_err(ToolError::config)?])
        }
    }

    #[test]
    fn rules_of_plugins_are_listed_with_their_plugin() {
        let setting = TestCli::default();
        let app = App::new(test_registry()).with_plugin(CarefulPlugin);
        let ran = setting.run_app(&app, &["rules", "list"]);
        assert!(ran.out.starts_with("session\n  deny echo(text: secret)"), "{}", ran.out);
        assert!(ran.out.contains("careful"), "{}", ran.out);
    }

    // F74
    #[test]
    fn rules_are_listed_by_scope() {
        let setting = TestCli::default();
        let config = setting.write_text(
            "c.toml",
            "allow = [\"echo\"]\n[[rules]]\npermission = \"kinds\"\npattern = \"a*\"\n\
             action = \"deny\"\nlocked = true\n\
             [agents.reader]\nrules = [{ permission = \"echo\", pattern = \"*\", action = \"ask\" }]\n",
        );
        let list = ["--config", &config, "rules", "list", "--deny", "fail"];
        let ran = setting.run(&list);
        let expected = format!(
            "user\n  allow echo  ({config}:1)\n  deny kinds(a*)  locked  ({config}:2)\n\
             agent\n  ask echo  for agent reader\n\
             session\n  deny fail  (--deny)\n"
        );
        assert_eq!((ran.code, ran.out, ran.err.as_str()), (0, expected, ""));
        let ran = setting.run(&[&list[..], &["--scope", "session", "--json"]].concat());
        let rules: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(rules.as_array().unwrap().len(), 1);
        assert_eq!(
            (&rules[0]["permission"], &rules[0]["action"]),
            (&"fail".into(), &"deny".into())
        );
        let none = setting.run(&["rules", "list"]);
        assert_eq!((none.code, none.out.as_str()), (0, ""));
        assert_eq!(none.err, "no rules apply; the mode decides\n");
        assert_eq!(setting.run(&["rules", "list", "--scope", "world"]).code, 2);
    }
}
