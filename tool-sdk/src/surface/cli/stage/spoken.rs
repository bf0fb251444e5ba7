//! What rules and hooks may speak of, so that a mistyped name is noticed.

use std::slice;
use std::sync::Arc;

use super::super::{Io, style};
use crate::hook::external::ExternalHooks;
use crate::permission::{Action, Rule};
use crate::pipeline::Pipeline;
use crate::toolset::{any_forbids, nearly_names, passed_over};

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
        let view = self.pipeline.toolset().view();
        let tools = self.pipeline.toolset().everything();
        for rule in view.unmatched_rules() {
            let nearly = rule.nearly_names();
            let nearly = nearly.filter(|_| tools.iter().any(|tool| nearly_names(rule, &**tool)));
            let why = match nearly {
                Some(name) => {
                    format!("says nothing of the argument `{name}`: write `{name}: ` with a blank")
                }
                None if !passed_over(rule, view.tools()).is_empty() => {
                    let tools = passed_over(rule, view.tools()).join("`, `");
                    format!("says nothing of calls of `{tools}`: they have no such argument")
                }
                None if may_come(rule) => continue,
                None if rule.argument.is_some() => {
                    "speaks of no argument of a tool that there is".to_owned()
                }
                None => "speaks of no tool that there is".to_owned(),
            };
            let origin = match rule.origin.as_str() {
                "" => String::new(),
                origin => format!(" ({origin})"),
            };
            io.say(style::plain(&format!("warning: the rule `{rule}`{origin} {why}")));
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

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
