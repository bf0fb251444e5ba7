//! Warns of rules, hook matchers and tool patterns that match nothing, because a name in them is
//! most likely mistyped.

use std::slice;
use std::sync::Arc;

use tool_sdk_core::{
    Action, Definition, Pipeline, Rule, Tool, ToolsetView,
    internal::{
        any_forbids_tool, closest_name, has_useless_pattern, nearly_names_argument,
        tools_without_argument,
    },
};
use tool_sdk_hooks::ExternalHooks;

use crate::{Io, args, style};

/// The rules, hook matchers and patterns to check, usable after the environment was taken apart.
pub(crate) struct UnmatchedPatterns {
    pub(super) pipeline: Pipeline,
    pub(super) hooks: Option<Arc<ExternalHooks>>,
    /// The tool patterns of the settings, each with its key.
    pub(super) patterns: Vec<(String, String)>,
}

impl UnmatchedPatterns {
    /// Warns of rules, matchers and patterns that match no tool, and none that `may_come`.
    ///
    /// They stay in force, because a tool may be added later.
    pub(crate) fn warn_unmatched(&self, may_come: impl Fn(&Rule) -> bool, io: &mut Io<'_>) {
        let tools = self.pipeline.toolset().all_tools();
        let mut told: Vec<Rule> = Vec::new();
        for (agent, view) in self.pipeline.toolset().agent_views() {
            for rule in view.unmatched_rules() {
                // Global rules are part of the view of each agent, too.
                if told.contains(rule) {
                    continue;
                }
                told.push(rule.clone());
                let Some(why) = unmatched_reason(rule, &tools, &view, &may_come) else { continue };
                let origin = match (rule.origin.as_str(), &agent) {
                    ("", None) => String::new(),
                    ("", Some(agent)) => format!(" (agents.{agent})"),
                    (origin, _) => format!(" ({origin})"),
                };
                io.print_stderr(style::sanitize_text(&format!(
                    "warning: the rule `{rule}`{origin} {why}"
                )));
            }
        }
        let definitions = || tools.iter().map(|tool| tool.definition());
        let matchers = self.hooks.iter().flat_map(|hooks| hooks.unmatched_matchers(definitions()));
        let matchers =
            matchers.map(|(place, name)| (format!("the matcher `{name}` (hooks.{place})"), name));
        let speaks = |place: &str, pattern: &String| {
            // `disable` takes the names of categories, too.
            let may_be_category = place == args::DISABLE;
            definitions().any(|it| {
                any_forbids_tool(slice::from_ref(pattern), it)
                    || (may_be_category && it.is_in_category(pattern))
            })
        };
        let patterns = self.patterns.iter().filter(|(place, pattern)| !speaks(place, pattern));
        let patterns = patterns
            .map(|(place, pattern)| (format!("the pattern `{pattern}` ({place})"), &**pattern));
        for (what, name) in matchers.chain(patterns) {
            // A regular expression may match any tool of a server.
            let permission = if name.contains(|c| !is_name_char(c)) { "*" } else { name };
            if !may_come(&Rule::new(Action::Deny, permission, "*")) {
                let warning = format!("warning: {what} matches no tool");
                io.print_stderr(style::sanitize_text(&warning));
            }
        }
    }
}

/// Returns why a rule matches nothing; `None` for a rule about a tool that may still come.
fn unmatched_reason(
    rule: &Rule,
    tools: &[Arc<dyn Tool>],
    view: &ToolsetView,
    may_come: impl Fn(&Rule) -> bool,
) -> Option<String> {
    let nearly = rule.near_argument_name();
    if let Some(name) =
        nearly.filter(|_| tools.iter().any(|tool| nearly_names_argument(rule, &**tool)))
    {
        let how = rule.argument_rule_hint(name);
        return Some(format!("does not match the argument `{name}`: write it {how}"));
    }
    let passed = tools_without_argument(rule, view.tools());
    if !passed.is_empty() {
        let passed = passed.join("`, `");
        return Some(format!("does not apply to `{passed}`: there is no such argument"));
    }
    if may_come(rule) {
        return None;
    }
    if let Some(tool) = tools.iter().find(|tool| has_useless_pattern(rule, tool.as_ref())) {
        return Some(useless_pattern_reason(rule, tool.definition()));
    }
    Some(match (closest_permission(rule.permission.as_str(), tools), &rule.argument) {
        (Some(close), _) => format!("matches no tool; did you mean `{close}`?"),
        (None, Some(_)) => "matches no argument of any tool".to_owned(),
        (None, None) => "matches no tool; `list` names the tools".to_owned(),
    })
}

/// Returns why a pattern for what a tool touches matches no call, and what to write instead.
fn useless_pattern_reason(rule: &Rule, tool: &Definition) -> String {
    let name = &tool.name;
    let argument = tool
        .display
        .primary
        .as_deref()
        .or_else(|| tool.parameters.properties().next().map(|(name, _)| name));
    match argument {
        Some(argument) => format!(
            "matches no call: `{name}` names nothing that it touches; for its argument write \
             `{}({argument}: {})`",
            rule.permission, rule.pattern
        ),
        None => format!("matches no call: `{name}` has no arguments; write `{}`", rule.permission),
    }
}

/// Returns the permission or the name of a tool that is most likely meant by an unknown one.
fn closest_permission<'t>(name: &str, tools: &'t [Arc<dyn Tool>]) -> Option<&'t str> {
    let definitions = tools.iter().map(|tool| tool.definition());
    let known: Vec<&str> = definitions.flat_map(|it| [it.name.as_str(), it.permission()]).collect();
    closest_name(name, &known).filter(|close| *close != name)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
