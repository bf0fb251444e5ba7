//! Which permission rules match tools, and which rules look like mistakes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::name::ToolName;
use crate::permission::{Action, Rule, RuleNames, Ruleset};
use crate::tool::{Definition, Resource, Tool};

/// The tools whose names are also permissions, with their aliases. Other tools with that permission
/// do the same work, so a rule that denies the tool by any of its names applies to them, too.
#[derive(Debug, Default)]
pub(super) struct PermissionSynonyms(HashMap<ToolName, Vec<ToolName>>);

impl PermissionSynonyms {
    pub(super) fn from_tools<'a>(tools: impl Iterator<Item = &'a Arc<dyn Tool>>) -> Self {
        let named =
            tools.map(|tool| tool.definition()).filter(|it| it.permission() == it.name.as_str());
        Self(named.map(|it| (it.name.clone(), it.aliases.clone())).collect())
    }

    /// Returns the names under which rules match a tool.
    pub(super) fn tool_names<'n>(&'n self, tool: &'n Definition) -> RuleNames<'n> {
        RuleNames::from(tool).with_forbidden(self.synonyms_of(tool.permission()))
    }

    /// Returns the names under which rules match a permission.
    pub(super) fn permission_names<'n>(&'n self, permission: &'n str) -> RuleNames<'n> {
        RuleNames::from(permission).with_forbidden(self.synonyms_of(permission))
    }

    /// Returns the names of the tool that the permission of `tool` is named after, if that is
    /// another tool.
    pub(super) fn namesakes<'n>(
        &'n self,
        tool: &Definition,
    ) -> impl Iterator<Item = &'n ToolName> + use<'n> {
        let permission = tool.permission();
        let other = self.0.get_key_value(permission).filter(|_| tool.name.as_str() != permission);
        other.into_iter().flat_map(|(name, aliases)| std::iter::once(name).chain(aliases))
    }

    fn synonyms_of(&self, permission: &str) -> &[ToolName] {
        self.0.get(permission).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Returns the rules that match no tool and no permission, and those that lack the blank after the
/// name of an argument.
pub(super) fn find_unmatched_rules<'a>(
    rules: &Ruleset,
    all: impl Iterator<Item = &'a Arc<dyn Tool>> + Clone,
) -> Vec<Rule> {
    let speaks_of = |rule: &Rule, tool: &dyn Tool| {
        rule.applies_to_names(&tool.definition().into())
            && rule.argument.as_deref().is_none_or(|argument| accepts_argument(tool, argument))
            && !has_useless_pattern(rule, tool)
    };
    let speaks_of_any = |rule: &&Rule| {
        rule.applies_to_names(&(&Resource::PERMISSIONS).into())
            || all.clone().any(|tool| speaks_of(rule, tool.as_ref()))
    };
    let lacks_a_blank =
        |rule: &&Rule| all.clone().any(|tool| nearly_names_argument(rule, tool.as_ref()));
    let is_unmatched = |rule: &&Rule| !speaks_of_any(rule) || lacks_a_blank(rule);
    rules.rules().iter().filter(is_unmatched).cloned().collect()
}

/// Whether the rule is about the tool and has a pattern for what it touches, which is nothing that a
/// pattern could match.
pub fn has_useless_pattern(rule: &Rule, tool: &dyn Tool) -> bool {
    rule.argument.is_none()
        && !rule.pattern.is_any()
        && rule.applies_to_names(&tool.definition().into())
        && !tool.may_name_resources()
}

/// Whether the rule would name an argument of the tool with a blank after the `:`.
pub fn nearly_names_argument(rule: &Rule, tool: &dyn Tool) -> bool {
    rule.near_argument_name().is_some_and(|name| {
        rule.applies_to_names(&tool.definition().into()) && has_parameter(tool, name)
    })
}

/// Returns the tools for which a rule on an argument has no effect, because they lack the argument,
/// though the rule names a permission that they share. A rule with the name of a tool that has the
/// argument means only that tool.
pub fn tools_without_argument<'t>(
    rule: &Rule,
    tools: impl Iterator<Item = &'t Arc<dyn Tool>> + Clone,
) -> Vec<&'t str> {
    let named = rule.permission.as_str();
    let argument = rule.argument.as_deref().filter(|_| rule.action != Action::Allow);
    let Some(argument) = argument.filter(|_| !named.contains(['*', '?'])) else {
        return Vec::new();
    };
    // A rule about files applies to all tools.
    if is_about_files(rule, tools.clone()) {
        return Vec::new();
    }
    let is_meant = |tool: &Arc<dyn Tool>| {
        let definition = tool.definition();
        // An alias that is also the permission means all tools with the permission.
        let is_own = definition.name == *named || definition.permission() != named;
        let is_named = definition.names().any(|name| name == named) && is_own;
        is_named && accepts_argument(tool.as_ref(), argument)
    };
    if tools.clone().any(is_meant) {
        return Vec::new();
    }
    let lacks = |tool: &&Arc<dyn Tool>| {
        rule.applies_to_names(&tool.definition().into())
            && !accepts_argument(tool.as_ref(), argument)
    };
    tools.filter(lacks).map(|tool| tool.definition().name.as_str()).collect()
}

/// Whether a tool may accept the argument `name`, by any of its names.
fn accepts_argument(tool: &dyn Tool, name: &str) -> bool {
    let parameters = &tool.definition().parameters;
    let is_open = parameters.as_map().get("additionalProperties") != Some(&false.into());
    is_open
        // A hidden parameter has a default.
        || tool.argument_default(name).is_some()
        || has_parameter(tool, name)
}

/// Whether a tool declares the parameter `name`, by any of its names.
fn has_parameter(tool: &dyn Tool, name: &str) -> bool {
    let parameters = &tool.definition().parameters;
    tool.argument_names(name).into_iter().any(|name| parameters.property(name).is_some())
}

/// Whether a rule on an argument is about files: a tool that it matches takes a path there.
pub(crate) fn is_about_files<'t>(
    rule: &Rule,
    mut tools: impl Iterator<Item = &'t Arc<dyn Tool>>,
) -> bool {
    let Some(argument) = &rule.argument else { return false };
    let is_of_any = rule.applies_to_names(&(&Resource::PERMISSIONS).into());
    tools.any(|tool| {
        tool.takes_path(argument) && (is_of_any || rule.applies_to_names(&tool.definition().into()))
    })
}
