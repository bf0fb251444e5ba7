//! What rules and hooks may speak of, so that a mistyped name is noticed.

use std::slice;
use std::sync::Arc;

use super::super::{Io, style};
use crate::hook::external::ExternalHooks;
use crate::permission::{Action, Rule};
use crate::pipeline::Pipeline;
use crate::tool::Tool;
use crate::toolset::{View, any_forbids, nearly_names, passed_over};

/// What rules and hooks may speak of, also once the calls are made by somebody else.
pub(in super::super) struct Spoken {
    pub(super) pipeline: Pipeline,
    pub(super) hooks: Option<Arc<ExternalHooks>>,
    /// What else speaks of tools: patterns, each with its place.
    pub(super) patterns: Vec<(String, String)>,
}

impl Spoken {
    /// Tells of rules and hooks that speak of nothing that there is, nor of anything that
    /// `may_come`.
    /// They stay: a tool may come later.
    pub(in super::super) fn warn(&self, may_come: impl Fn(&Rule) -> bool, io: &mut Io<'_>) {
        let tools = self.pipeline.toolset().everything();
        let mut told: Vec<Rule> = Vec::new();
        for (agent, view) in self.pipeline.toolset().views() {
            for rule in view.unmatched_rules() {
                // What holds for everybody holds for each agent, too.
                if told.contains(rule) {
                    continue;
                }
                told.push(rule.clone());
                let Some(why) = nothing_said(rule, &tools, &view, &may_come) else { continue };
                let origin = match (rule.origin.as_str(), &agent) {
                    ("", None) => String::new(),
                    ("", Some(agent)) => format!(" (agents.{agent})"),
                    (origin, _) => format!(" ({origin})"),
                };
                io.say(style::plain(&format!("warning: the rule `{rule}`{origin} {why}")));
            }
        }
        let definitions = || tools.iter().map(|tool| tool.definition());
        let matchers = self.hooks.iter().flat_map(|hooks| hooks.unmatched(definitions()));
        let matchers =
            matchers.map(|(place, name)| (format!("the matcher `{name}` (hooks.{place})"), name));
        let speaks =
            |pattern: &String| definitions().any(|it| any_forbids(slice::from_ref(pattern), it));
        let patterns = self.patterns.iter().filter(|(_, pattern)| !speaks(pattern));
        let patterns = patterns
            .map(|(place, pattern)| (format!("the pattern `{pattern}` ({place})"), &**pattern));
        for (what, name) in matchers.chain(patterns) {
            // An expression may mean whatever a server brings.
            let permission = if name.contains(|c| !is_of_name(c)) { "*" } else { name };
            if !may_come(&Rule::new(Action::Deny, permission, "*")) {
                let warning = format!("warning: {what} speaks of no tool that there is");
                io.say(style::plain(&warning));
            }
        }
    }
}

/// What a rule does not say that it seems to say; nothing of one about what may come.
fn nothing_said(
    rule: &Rule,
    tools: &[Arc<dyn Tool>],
    view: &View,
    may_come: impl Fn(&Rule) -> bool,
) -> Option<String> {
    let nearly = rule.nearly_names();
    if let Some(name) = nearly.filter(|_| tools.iter().any(|tool| nearly_names(rule, &**tool))) {
        let how = rule.well_named(name);
        return Some(format!("says nothing of the argument `{name}`: write it {how}"));
    }
    let passed = passed_over(rule, view.tools());
    if !passed.is_empty() {
        let passed = passed.join("`, `");
        return Some(format!("says nothing of calls of `{passed}`: they have no such argument"));
    }
    if may_come(rule) {
        return None;
    }
    Some(match rule.argument {
        Some(_) => "speaks of no argument of a tool that there is".to_owned(),
        None => "speaks of no tool that there is".to_owned(),
    })
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
