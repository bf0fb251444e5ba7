//! What rules and hooks may speak of, so that a mistyped name is noticed.

use std::sync::Arc;

use super::super::{Io, style};
use crate::hook::external::ExternalHooks;
use crate::permission::{Action, Rule};
use crate::pipeline::Pipeline;

/// What rules and hooks may speak of, also once the calls are made by somebody else.
pub(in super::super) struct Spoken {
    pub(super) pipeline: Pipeline,
    pub(super) hooks: Option<Arc<ExternalHooks>>,
}

impl Spoken {
    /// Tells of rules and hooks that speak of nothing that there is, nor of anything that
    /// `may_come`.
    /// They stay: a tool may come later.
    pub(in super::super) fn warn(&self, may_come: impl Fn(&Rule) -> bool, io: &mut Io<'_>) {
        let view = self.pipeline.toolset().view();
        for rule in view.unmatched_rules().iter().filter(|rule| !may_come(rule)) {
            let origin = match rule.origin.as_str() {
                "" => String::new(),
                origin => format!(" ({origin})"),
            };
            let nothing = match &rule.argument {
                Some(_) => "no argument of a tool",
                None => "no tool",
            };
            let warning =
                format!("warning: the rule `{rule}`{origin} speaks of {nothing} that there is");
            io.say(style::plain(&warning));
        }
        let tools = self.pipeline.toolset().everything();
        let definitions = || tools.iter().map(|tool| tool.definition());
        for (place, name) in self.hooks.iter().flat_map(|hooks| hooks.unmatched(definitions())) {
            // An expression may mean whatever a server brings.
            let permission = if name.contains(|c| !is_of_name(c)) { "*" } else { name };
            if !may_come(&Rule::new(Action::Deny, permission, "*")) {
                let warning = format!(
                    "warning: the matcher `{name}` (hooks.{place}) speaks of no tool that there is"
                );
                io.say(style::plain(&warning));
            }
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
