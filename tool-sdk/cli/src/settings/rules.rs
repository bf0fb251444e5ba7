//! Reads the rules of the command line and of the environment.

use clap::ArgMatches;
use tool_sdk_core::{Action, Rule, RuleScope};

use super::sources::SettingSources;
use crate::args;
use crate::exit::{CommandError, Result};

/// A rule, or the error message for it.
type ParsedRule = std::result::Result<Rule, String>;

/// Appends the rules of the environment and of the command line to those of the file; fails with
/// the messages of all invalid ones.
pub(super) fn append_rules(
    mut rules: Vec<Rule>,
    from: SettingSources<'_, '_>,
) -> Result<Vec<Rule>> {
    let mut wrong = Vec::new();
    for rule in env_rules(from)?.into_iter().chain(option_rules(from.levels)) {
        match rule {
            Ok(rule) => rules.push(rule),
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(rules) } else { Err(CommandError::usage(wrong.join("\n"))) }
}

/// Returns the rules of the command line, in their order.
fn option_rules(levels: &[&ArgMatches]) -> Vec<ParsedRule> {
    let given = levels.iter().flat_map(|matches| args::rule_options(matches));
    given
        .map(|(action, text)| parse_rule(action, text, &format!("--{action}"), RuleScope::Session))
        .collect()
}

/// Returns the rules of the environment, one a line: first `allow`, then `ask`, then `deny`.
fn env_rules(from: SettingSources<'_, '_>) -> Result<Vec<ParsedRule>> {
    let mut rules = Vec::new();
    for (variable, action) in [
        ("TOOL_SDK_ALLOW", Action::Allow),
        ("TOOL_SDK_ASK", Action::Ask),
        ("TOOL_SDK_DENY", Action::Deny),
    ] {
        let text = from.text(variable)?.unwrap_or_default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            rules.push(parse_rule(action, line, variable, RuleScope::User));
        }
    }
    Ok(rules)
}

fn parse_rule(action: Action, text: &str, origin: &str, scope: RuleScope) -> ParsedRule {
    match Rule::parse(action, text) {
        Ok(rule) => Ok(rule.origin(origin).scope(scope)),
        Err(error) => Err(format!("{origin}: {error}")),
    }
}
