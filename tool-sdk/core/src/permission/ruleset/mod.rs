//! Ordered rules, and the pure function that finds the deciding rule for a resource.

mod number;
mod path_aliases;
mod rule_names;

use serde_json::{Number, Value};

pub use self::rule_names::RuleNames;
use super::pattern::fold_case;
use super::{Action, ArgumentLookup, Rule};
use crate::tool::Resource;

/// Whether file systems usually ignore the case of names on this platform.
const FOLDS_CASE: bool = cfg!(any(windows, target_vendor = "apple"));

/// Rules in the order of evaluation: by scope, and within a scope as given.
///
/// Of the rules that match, the last one decides, unless one of them is locked: then a locked
/// denial decides, or else the first locked rule.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Action, Rule, Ruleset, RuleScope};
///
/// let rules = Ruleset::new([
///     Rule::parse(Action::Allow, "run(git *)")?.scope(RuleScope::Session),
///     Rule::parse(Action::Deny, "run")?.scope(RuleScope::User),
/// ]);
/// assert_eq!(rules.rules()[0].to_string(), "deny run");
/// # Ok::<(), tool_sdk::InvalidRule>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset(Vec<Rule>);

impl Ruleset {
    /// Orders rules by scope; within a scope the given order is kept.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut rules: Vec<Rule> = rules.into_iter().collect();
        rules.sort_by_key(|rule| rule.scope);
        Self(rules)
    }

    /// Returns the rules in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// Returns these rules and `others`, ordered by scope.
    #[must_use]
    pub fn merged_with(&self, others: &Self) -> Self {
        Self::new(self.0.iter().chain(&others.0).cloned())
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rules that could match a call of a tool with these names.
    pub(crate) fn for_names<'n>(&self, names: impl Into<RuleNames<'n>>) -> Self {
        let names = names.into();
        Self(self.0.iter().filter(|rule| rule.applies_to_names(&names)).cloned().collect())
    }

    /// Whether every call of a tool with these names is denied: the last rule about the whole tool
    /// denies everything.
    #[must_use]
    pub fn hides_tool(&self, names: &[&str]) -> bool {
        self.hides_names(&names.into())
    }

    /// Like [`hides_tool`](Self::hides_tool), for the names of a tool.
    pub(crate) fn hides_names(&self, names: &RuleNames<'_>) -> bool {
        let speaks = |rule: &&Rule| rule.argument.is_none() && rule.applies_to_names(names);
        let everything = |rule: &Rule| rule.action == Action::Deny && rule.pattern.is_any();
        let locked =
            || self.0.iter().filter(speaks).filter(|rule| rule.locked && rule.pattern.is_any());
        locked()
            .find(|rule| everything(rule))
            .or_else(|| locked().next())
            .or_else(|| self.0.iter().rfind(speaks))
            .is_some_and(everything)
    }

    /// Returns the rule that decides about `resource`: of the locked ones that match, the first
    /// that denies, or else the first; without a locked one, the last one that matches.
    ///
    /// `alone` says that the call touches no other resource.
    pub(crate) fn deciding_rule(
        &self,
        resource: &Resource,
        arguments: &dyn ArgumentLookup,
        alone: bool,
    ) -> Option<&Rule> {
        self.deciding_rule_with_case(FOLDS_CASE, resource, arguments, alone)
    }

    /// Like [`deciding_rule`](Self::deciding_rule); with `folds`, file names that differ only in
    /// case are the same file.
    fn deciding_rule_with_case(
        &self,
        folds: bool,
        resource: &Resource,
        arguments: &dyn ArgumentLookup,
        alone: bool,
    ) -> Option<&Rule> {
        let says = |rule: &Rule| rule.matches_resource(resource, arguments, alone, false);
        let said = self.last_match(says);
        let is_plain = !folds && self.0.iter().all(|rule| rule.argument.is_none());
        if resource.absolute().is_none() || is_plain {
            return said;
        }
        // A rule on an argument that means a file, or a name in another case, can only tighten the
        // decision.
        let in_any_case = |rule: &Rule| {
            folds
                && rule.action != Action::Allow
                && rule.matches_resource(resource, arguments, alone, true)
        };
        let meant = self.last_match(|rule| {
            says(rule) || in_any_case(rule) || rule.matches_file(resource, arguments, folds)
        });
        let least = said.map_or(Action::Allow, |rule| rule.action);
        meant.filter(|rule| rule.action > least).or(said)
    }

    fn last_match(&self, matches: impl Fn(&Rule) -> bool) -> Option<&Rule> {
        let matching = || self.0.iter().filter(|rule| matches(rule));
        let locked = || matching().filter(|rule| rule.locked);
        locked()
            .find(|rule| rule.action == Action::Deny)
            .or_else(|| locked().next())
            .or_else(|| matching().last())
    }

    /// Returns a rule that denies or asks about some resources of the tool, and that no later rule
    /// for everything overrides. It cannot be evaluated when the tool does not name its resources.
    pub(crate) fn unjudged_rule(&self, arguments: &dyn ArgumentLookup) -> Option<&Rule> {
        let whole = |rule: &Rule| rule.argument.is_none() && rule.pattern.is_any();
        let last = self.0.iter().rposition(whole);
        self.0.iter().enumerate().find_map(|(at, rule)| {
            let stands = rule.locked || last.is_none_or(|last| at > last);
            let partial = match &rule.argument {
                Some(_) => rule.is_about_files(arguments),
                None => !rule.pattern.is_any(),
            };
            (stands && partial && rule.action != Action::Allow).then_some(rule)
        })
    }
}

impl FromIterator<Rule> for Ruleset {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self::new(rules)
    }
}

impl Rule {
    /// Whether the rule could be about a tool with these names.
    #[doc(hidden)]
    pub fn applies_to_names(&self, names: &RuleNames<'_>) -> bool {
        match self.action {
            Action::Allow => names.own_names().any(|name| self.permission.matches_literally(name)),
            // Aliases are found regardless of case, so a denial ignores case as well.
            Action::Ask | Action::Deny => {
                names.forbidden_names().any(|name| self.permission.matches_any_case(name))
            }
        }
    }

    /// Whether the rule matches `resource`; with `folds`, file names are compared without case.
    fn matches_resource(
        &self,
        resource: &Resource,
        arguments: &dyn ArgumentLookup,
        alone: bool,
        folds: bool,
    ) -> bool {
        // Other rules are applied to the whole of which this is a part.
        let is_whole = self.action == Action::Allow || self.pattern.is_any();
        if resource.has_deny_rules_only() && is_whole {
            return false;
        }
        // PA7: a rule that allows everything does not replace a mandatory approval.
        let is_named = || resource.permission().is_none_or(|name| self.permission.is_exact(name));
        if self.action == Action::Allow && resource.is_approval_mandatory() && !is_named() {
            return false;
        }
        match &self.argument {
            // One argument does not vouch for everything else that a call touches.
            Some(_) if self.action == Action::Allow && (resource.is_opaque() || !alone) => false,
            Some(name) => arguments
                .value(name)
                .is_some_and(|value| self.matches_value(&value, resource, arguments, folds)),
            // An opaque resource is only allowed by a rule for everything, or for exactly this
            // text.
            None if resource.is_opaque() && self.action == Action::Allow => {
                self.pattern.is_any()
                    || resource.needs_exact_rule() && self.pattern.is_exact(resource.text())
            }
            None => self.matches_spelling(resource, folds),
        }
    }

    /// Whether the rule is about an argument that the call does not have, and that holds the path
    /// of a file.
    fn is_about_files(&self, arguments: &dyn ArgumentLookup) -> bool {
        self.argument.as_deref().is_some_and(|name| arguments.value(name).is_none())
            && arguments.is_path(self)
    }

    /// Whether the rule means the file `resource`, although the call has no such argument: the file
    /// is the same, regardless of the tool.
    fn matches_file(
        &self,
        resource: &Resource,
        arguments: &dyn ArgumentLookup,
        folds: bool,
    ) -> bool {
        let is_unknown = self.action == Action::Allow && resource.is_opaque();
        !is_unknown && self.is_about_files(arguments) && self.matches_spelling(resource, folds)
    }

    fn matches_spelling(&self, resource: &Resource, folds: bool) -> bool {
        if resource.names().any(|name| self.pattern.matches_any_case(name)) {
            return true;
        }
        let is_file = resource.absolute().is_some();
        if folds && is_file && self.action != Action::Allow {
            let folded = Self { pattern: self.pattern.to_folded_case(), ..self.clone() };
            let means = |text: &str| folded.matches_text(text) || folded.matches_path(text);
            if resource.forbidden_spellings().any(|text| means(&fold_case(text))) {
                return true;
            }
        }
        let matches = |text| self.matches_text(text) || is_file && self.matches_path(text);
        match self.action {
            Action::Allow if !is_file => self.pattern.matches_literally(resource.text()),
            Action::Allow => resource.spellings().any(matches),
            Action::Ask | Action::Deny => resource.forbidden_spellings().any(matches),
        }
    }

    /// Whether the pattern, normalized as a path, matches.
    fn matches_path(&self, path: &str) -> bool {
        match self.action {
            Action::Allow => self.pattern.matches_path(path),
            Action::Ask | Action::Deny => {
                self.pattern.matches_path_at_any_depth(path)
                    || self.pattern.matches_file_at_any_depth(path)
            }
        }
    }

    fn matches_value(
        &self,
        value: &Value,
        resource: &Resource,
        arguments: &dyn ArgumentLookup,
        folds: bool,
    ) -> bool {
        let matches_item = |item| self.matches_value(item, resource, arguments, folds);
        match value {
            // A path has many spellings, and the argument is only one of them.
            Value::String(text) if resource.is_sent_as(text) => {
                self.matches_spelling(resource, folds)
            }
            Value::String(text) => {
                self.matches_text(text) || self.matches_path_argument(text, arguments, folds)
            }
            // A rule that allows must match every item, one that denies or asks only one.
            Value::Array(items) if self.action == Action::Allow => {
                !items.is_empty() && items.iter().all(matches_item)
            }
            Value::Array(items) => items.iter().any(matches_item),
            Value::Number(number) => self.matches_number(number),
            other => self.matches_text(&other.to_string()),
        }
    }

    /// Whether the rule denies or asks about the path in the argument with this text. The path may
    /// be no resource of the call, such as the working folder of a command.
    fn matches_path_argument(
        &self,
        text: &str,
        arguments: &dyn ArgumentLookup,
        folds: bool,
    ) -> bool {
        let is_meant =
            |path: &Resource| path.is_sent_as(text) && self.matches_spelling(path, folds);
        self.action != Action::Allow && arguments.paths().iter().any(is_meant)
    }

    /// Whether the pattern is the number, or matches its text.
    fn matches_number(&self, number: &Number) -> bool {
        let is_forbidden = |text: String| self.action != Action::Allow && self.matches_text(&text);
        number::is_same_number(self.pattern.as_str(), number, self.action)
            || self.matches_text(&number.to_string())
            || number::to_whole_number(number).is_some_and(is_forbidden)
    }

    fn matches_text(&self, text: &str) -> bool {
        match self.action {
            Action::Allow => self.pattern.matches(text),
            Action::Ask | Action::Deny => self.pattern.matches_at_any_depth(text),
        }
    }
}

#[cfg(test)]
mod tests;
