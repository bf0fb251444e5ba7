//! Rules in order, and the one pure function over them: which rule decides about a subject.

mod number;
mod path_aliases;
mod rule_names;

use serde_json::{Number, Value};

pub(crate) use self::rule_names::RuleNames;
use super::pattern::fold_case;
use super::{Action, ArgumentLookup, Rule};
use crate::tool::Resource;

/// Whether names of files that differ in the case of their letters are usually one file here.
const FOLDS_CASE: bool = cfg!(any(windows, target_vendor = "apple"));

/// Rules in the order in which they are looked at: by scope, and within a scope as given.
///
/// Of the rules that match, the last one decides, unless one of them is locked: a locked denial
/// comes before everything, and otherwise the first locked rule holds.
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
    /// Puts rules together: by scope, and within a scope in the given order.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut rules: Vec<Rule> = rules.into_iter().collect();
        rules.sort_by_key(|rule| rule.scope);
        Self(rules)
    }

    /// The rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// These rules and `others`, in the order of their scopes.
    #[must_use]
    pub fn merged_with(&self, others: &Self) -> Self {
        Self::new(self.0.iter().chain(&others.0).cloned())
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules that could speak of a call of a tool with these names.
    pub(crate) fn for_names<'n>(&self, names: impl Into<RuleNames<'n>>) -> Self {
        let names = names.into();
        Self(self.0.iter().filter(|rule| rule.applies_to_names(&names)).cloned().collect())
    }

    /// Whether every call of a tool with these names is denied: the last rule that speaks
    /// of it denies everything.
    #[must_use]
    pub fn hides_tool(&self, names: &[&str]) -> bool {
        self.hides_names(&names.into())
    }

    /// The same for a tool with these names.
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

    /// The rule that decides about `subject`: of the locked ones that match, one that denies
    /// or else the first; without any, the last one that matches.
    ///
    /// `alone` says that the call touches nothing else.
    pub(crate) fn deciding_rule(
        &self,
        subject: &Resource,
        arguments: &dyn ArgumentLookup,
        alone: bool,
    ) -> Option<&Rule> {
        self.deciding_rule_with_case(FOLDS_CASE, subject, arguments, alone)
    }

    /// The same where names of files may differ in the case of their letters alone, or where
    /// (`folds`) they are one file then.
    fn deciding_rule_with_case(
        &self,
        folds: bool,
        subject: &Resource,
        arguments: &dyn ArgumentLookup,
        alone: bool,
    ) -> Option<&Rule> {
        let says = |rule: &Rule| rule.matches_resource(subject, arguments, alone, false);
        let said = self.last_match(says);
        let is_plain = !folds && self.0.iter().all(|rule| rule.argument.is_none());
        if subject.absolute().is_none() || is_plain {
            return said;
        }
        // What rules on arguments mean by files, and rules by names in another case, only
        // tightens what is said of the call.
        let in_any_case = |rule: &Rule| {
            folds
                && rule.action != Action::Allow
                && rule.matches_resource(subject, arguments, alone, true)
        };
        let meant = self.last_match(|rule| {
            says(rule) || in_any_case(rule) || rule.matches_file(subject, arguments, folds)
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

    /// A rule that forbids or asks about some of what a tool touches, and that no later
    /// rule for everything overrides: what becomes of it when the tool does not say what it
    /// touches?
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
    /// Whether it could be about a tool with these names.
    pub(crate) fn applies_to_names(&self, names: &RuleNames<'_>) -> bool {
        match self.action {
            Action::Allow => names.own_names().any(|name| self.permission.matches_literally(name)),
            // A tool is found by its aliases in any case, so a denial holds in any case.
            Action::Ask | Action::Deny => {
                names.forbidden_names().any(|name| self.permission.matches_any_case(name))
            }
        }
    }

    /// Whether it is about `subject`; with `folds` files are compared in any case.
    fn matches_resource(
        &self,
        subject: &Resource,
        arguments: &dyn ArgumentLookup,
        alone: bool,
        folds: bool,
    ) -> bool {
        // What it is a part of is judged by all rules.
        let is_whole = self.action == Action::Allow || self.pattern.is_any();
        if subject.has_deny_rules_only() && is_whole {
            return false;
        }
        // PA7: who allows everything has not thought of what has to be asked about.
        let is_named = || subject.permission().is_none_or(|name| self.permission.is_exact(name));
        if self.action == Action::Allow && subject.is_approval_mandatory() && !is_named() {
            return false;
        }
        match &self.argument {
            // One argument does not vouch for everything else that a call touches.
            Some(_) if self.action == Action::Allow && (subject.is_opaque() || !alone) => false,
            Some(name) => arguments
                .value(name)
                .is_some_and(|value| self.matches_value(&value, subject, arguments, folds)),
            // Nobody understood it, so nothing but a rule for everything allows it, or for just this.
            None if subject.is_opaque() && self.action == Action::Allow => {
                self.pattern.is_any()
                    || subject.needs_exact_rule() && self.pattern.is_exact(subject.text())
            }
            None => self.matches_spelling(subject, folds),
        }
    }

    /// Whether it is about an argument that the call has not, and that holds the path of a file.
    fn is_about_files(&self, arguments: &dyn ArgumentLookup) -> bool {
        self.argument.as_deref().is_some_and(|name| arguments.value(name).is_none())
            && arguments.is_path(self)
    }

    /// Whether it means `subject` by the path of a file, though the call has no such argument:
    /// the file is the same, whoever opens it.
    fn matches_file(
        &self,
        subject: &Resource,
        arguments: &dyn ArgumentLookup,
        folds: bool,
    ) -> bool {
        let is_unknown = self.action == Action::Allow && subject.is_opaque();
        !is_unknown && self.is_about_files(arguments) && self.matches_spelling(subject, folds)
    }

    fn matches_spelling(&self, subject: &Resource, folds: bool) -> bool {
        let is_file = subject.absolute().is_some();
        if folds && is_file && self.action != Action::Allow {
            let folded = Self { pattern: self.pattern.to_folded_case(), ..self.clone() };
            let means = |text: &str| folded.matches_text(text) || folded.matches_path(text);
            if subject.forbidden_spellings().any(|text| means(&fold_case(text))) {
                return true;
            }
        }
        let matches = |text| self.matches_text(text) || is_file && self.matches_path(text);
        match self.action {
            Action::Allow if !is_file => self.pattern.matches_literally(subject.text()),
            Action::Allow => subject.spellings().any(matches),
            Action::Ask | Action::Deny => subject.forbidden_spellings().any(matches),
        }
    }

    /// Whether the pattern is another spelling of a path.
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
        subject: &Resource,
        arguments: &dyn ArgumentLookup,
        folds: bool,
    ) -> bool {
        let matches_item = |item| self.matches_value(item, subject, arguments, folds);
        match value {
            // The same path has many spellings, and what was sent is only one.
            Value::String(text) if subject.is_sent_as(text) => {
                self.matches_spelling(subject, folds)
            }
            Value::String(text) => {
                self.matches_text(text) || self.matches_path_argument(text, arguments, folds)
            }
            // A rule that permits means every item, one that forbids means any.
            Value::Array(items) if self.action == Action::Allow => {
                !items.is_empty() && items.iter().all(matches_item)
            }
            Value::Array(items) => items.iter().any(matches_item),
            Value::Number(number) => self.matches_number(number),
            other => self.matches_text(&other.to_string()),
        }
    }

    /// Whether it forbids the path that the argument with this text means, which may be no
    /// subject, such as the folder in which a command is run.
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

    /// Whether the pattern is the number, or matches how it is written.
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
