//! The rules about one tool that say something about files for every tool with its permission.
//!
//! A file that is denied to the tool that reads files must not be read by a command, nor show up in a
//! search.
//!
//! **Invariant:** rules that deny a tool as a whole say nothing about files.

use std::sync::Arc;

use crate::permission::{Action, Rule, RuleNames, Ruleset};
use crate::tool::{Definition, Tool};
use crate::toolset::{ToolsetView, is_about_files};

/// Returns the rules about files of each tool that has the permission, except for the tool `own`.
pub(super) fn file_rules_of_tools(
    rules: &Ruleset,
    view: &ToolsetView,
    tools: &[Arc<dyn Tool>],
    permission: &str,
    own: &str,
) -> Vec<Ruleset> {
    let mut found: Vec<Ruleset> = Vec::new();
    for tool in tools {
        let definition = tool.definition();
        if definition.permission() != permission || definition.name.as_str() == own {
            continue;
        }
        let of_tool = file_rules(rules, view, definition);
        if can_restrict(&of_tool) && !found.contains(&of_tool) {
            found.push(of_tool);
        }
    }
    found
}

/// Returns the rules about a tool that also say something about files for other tools: without
/// those that ask about every call of it, or deny the tool as a whole.
fn file_rules(rules: &Ruleset, view: &ToolsetView, tool: &Definition) -> Ruleset {
    let names = view.tool_names(tool);
    let rules = rules.for_names(names.clone());
    // A rule that denies every path denies the tool.
    let of_subjects = |rule: &Rule| Rule { argument: None, ..rule.clone() };
    let is_hidden = Ruleset::new(rules.rules().iter().map(of_subjects)).hides_names(&names);
    let permission = [tool.permission()];
    let permission = RuleNames::from(&permission);
    let is_about_files = |rule: &&Rule| {
        let is_whole = rule.pattern.is_any() && !rule.applies_to_names(&permission);
        match rule.action {
            Action::Allow => true,
            Action::Ask => !is_whole,
            Action::Deny => !(is_whole && is_hidden),
        }
    };
    Ruleset::new(rules.rules().iter().filter(is_about_files).cloned())
}

/// Returns the rules without those on arguments that hold no paths, because a shown file has no
/// arguments.
pub(super) fn rules_about_shown_files(rules: &Ruleset, tools: &[Arc<dyn Tool>]) -> Ruleset {
    let is_about_it = |rule: &&Rule| rule.argument.is_none() || is_about_files(rule, tools.iter());
    Ruleset::new(rules.rules().iter().filter(is_about_it).cloned())
}

/// Whether a rule can leave a file out.
pub(super) fn can_restrict(rules: &Ruleset) -> bool {
    rules.rules().iter().any(|rule| rule.action != Action::Allow)
}
