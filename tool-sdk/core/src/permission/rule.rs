//! One rule: what it matches, what it decides, and where it comes from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Pattern;

/// What a rule decides about the calls that it matches.
///
/// Ordered by strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "there are no other actions")]
pub enum Action {
    /// Run the call.
    Allow,
    /// Ask for an approval.
    Ask,
    /// Refuse the call; no approval, hook or mode lifts that.
    Deny,
}

impl Action {
    /// Returns `allow`, `ask` or `deny`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a rule comes from; rules of a later scope come after those of earlier scopes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the order of composition is fixed")]
pub enum RuleScope {
    /// The host's defaults.
    Default,
    /// The user's configuration.
    #[default]
    User,
    /// The agent's rules.
    Agent,
    /// The session's rules.
    Session,
}

impl fmt::Display for RuleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Agent => "agent",
            Self::Session => "session",
        })
    }
}

/// A rule.
///
/// Serialized, a rule keeps all fields, including its scope. Rules from configuration files are
/// read as [`RulesConfig`](crate::RulesConfig), which cannot set a scope.
///
/// As text a rule is `permission(pattern)`, `permission(argument: pattern)` or `permission` alone,
/// which matches everything under that permission. Blanks around a pattern are ignored; `?` can
/// stand for a blank that must match.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Action, Rule};
///
/// let rule = Rule::parse(Action::Allow, "run(git *)")?;
/// assert_eq!(rule.to_string(), "allow run(git *)");
/// assert_eq!(Rule::parse(Action::Deny, "run")?.to_string(), "deny run");
/// # Ok::<(), tool_sdk::InvalidRule>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// A misspelt `pattern` would be a rule for everything.
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// The permission, or the tool, that the rule is about.
    pub permission: Pattern,
    /// The resources that it matches.
    #[serde(default = "Pattern::any", skip_serializing_if = "Pattern::is_any")]
    pub pattern: Pattern,
    /// The argument that `pattern` is matched against, instead of the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// What the rule decides.
    pub action: Action,
    /// Where the rule comes from.
    #[serde(default)]
    pub scope: RuleScope,
    /// Whether later rules cannot override it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// The file or option that contains the rule, for messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
}

impl Rule {
    /// Returns a rule about the resources of a permission.
    #[must_use]
    pub fn new(
        action: Action,
        permission: impl Into<Pattern>,
        pattern: impl Into<Pattern>,
    ) -> Self {
        Self {
            permission: permission.into(),
            pattern: pattern.into(),
            argument: None,
            action,
            scope: RuleScope::default(),
            locked: false,
            origin: String::new(),
        }
    }

    /// Parses a rule as it is written on the command line.
    ///
    /// # Errors
    ///
    /// Fails when the text is empty, its parentheses do not match, the permission contains blanks,
    /// or the pattern is empty or in quotes.
    pub fn parse(action: Action, text: &str) -> Result<Self, InvalidRule> {
        let invalid = |why| InvalidRule::for_text(text, why);
        let text = text.trim();
        let named = |permission: &str| match permission.contains(char::is_whitespace) {
            // `deny = ["deny run"]` would match nothing.
            true => {
                Err(invalid("a permission has no blanks, and the action is not part of the rule"))
            }
            false => Ok(()),
        };
        let Some((permission, rest)) = text.split_once('(') else {
            return match text {
                "" => Err(invalid("it is empty")),
                text if text.contains(')') => Err(invalid("`(` is missing")),
                text => named(text).map(|()| Self::new(action, text, Pattern::any())),
            };
        };
        let inside = rest.strip_suffix(')').ok_or_else(|| invalid("it must end in `)`"))?;
        if permission.trim().is_empty() {
            return Err(invalid("the permission is missing"));
        }
        named(permission.trim())?;
        let (argument, pattern) = split_argument(inside.trim_start()).unzip();
        let pattern = pattern.unwrap_or(inside).trim();
        if let Some(why) = quoting_error(pattern) {
            return Err(invalid(why));
        }
        // An empty pattern may come from a variable that was not set.
        if pattern.is_empty() {
            return Err(invalid("its pattern is empty; write `*` for everything"));
        }
        let rule = Self::new(action, permission.trim(), pattern);
        Ok(Self { argument: argument.map(str::to_owned), ..rule })
    }

    /// Returns the name of an argument that the pattern seems to start with.
    #[doc(hidden)]
    pub fn near_argument_name(&self) -> Option<&str> {
        let (name, _) = self.pattern.as_str().split_once([':', '='])?;
        let name = name.trim_end();
        (self.argument.is_none() && is_argument_name(name)).then_some(name)
    }

    /// Returns how to write a rule about that argument. A pattern of the form `name: pattern` can
    /// only come from the long form of a rule.
    #[doc(hidden)]
    pub fn argument_rule_hint(&self, name: &str) -> String {
        match split_argument(self.pattern.as_str()) {
            Some(_) => format!("with `argument = \"{name}\"` beside the pattern"),
            None => format!("as `{name}: ` with a blank"),
        }
    }

    /// Sets the scope.
    #[must_use]
    pub fn scope(mut self, scope: RuleScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the file or option that contains the rule, for messages.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }

    /// Prevents later rules from overriding it.
    #[must_use]
    pub fn locked(mut self) -> Self {
        self.locked = true;
        self
    }
}

/// Splits `name: pattern`. The name must be a possible argument name, and the blank tells it from a
/// URL or a drive.
fn split_argument(inside: &str) -> Option<(&str, &str)> {
    inside.split_once(": ").filter(|(name, _)| is_argument_name(name))
}

/// Whether the text could be the name of an argument.
fn is_argument_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The quotes of shells, file formats and prose.
const QUOTES: [[char; 2]; 5] = [['"', '"'], ['\'', '\''], ['`', '`'], ['“', '”'], ['‘', '’']];

/// Returns what is wrong with a pattern in quotes, as in a shell.
pub(super) fn quoting_error(pattern: &str) -> Option<&'static str> {
    let is_in = |quotes: &[char; 2]| {
        let inside = pattern.strip_prefix(quotes[0]).and_then(|rest| rest.strip_suffix(quotes[1]));
        inside.is_some_and(|inside| !inside.contains(quotes))
    };
    QUOTES.iter().any(is_in).then_some("its pattern must stand without quotes")
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.action, self.permission)?;
        match (&self.argument, self.pattern.is_any()) {
            (Some(argument), _) => write!(f, "({argument}: {})", self.pattern),
            (None, false) => write!(f, "({})", self.pattern),
            (None, true) => Ok(()),
        }
    }
}

/// Parses `allow RULE`, `ask RULE` or `deny RULE`, as [`Display`](fmt::Display) writes it.
impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let (action, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
        let action = match action {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            "deny" => Action::Deny,
            _ => {
                let why = "it must start with `allow`, `ask` or `deny`";
                return Err(InvalidRule::for_text(text, why));
            }
        };
        Self::parse(action, rest)
    }
}

/// A text that is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRule(String);

impl InvalidRule {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn for_text(text: &str, why: &str) -> Self {
        Self(format!("`{text}` is not a rule: {why}; write `permission(pattern)` or `permission`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_as_they_are_written() {
        for text in [
            "allow run(git *)",
            "allow run('git' push 'x y')",
            "deny *",
            "ask edit(path: *.env)",
            "allow fetch(https://a.b/*)",
            "deny run(rm (x))",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        assert_eq!(
            "ask edit(path: *.env)".parse::<Rule>().unwrap().argument.as_deref(),
            Some("path")
        );
        assert!("allow fetch(https://a.b/*)".parse::<Rule>().unwrap().argument.is_none());
        assert!(Rule::parse(Action::Deny, "run(*)").unwrap().pattern.is_any());
    }

    // F72: blanks around the parts of a rule are ignored.
    #[test]
    fn blanks_around_the_parts_of_a_rule_do_not_count() {
        for (text, expected) in [
            ("deny edit( secrets/* )", "deny edit(secrets/*)"),
            ("deny  edit ( secrets/* ) ", "deny edit(secrets/*)"),
            ("deny edit( path: secrets/* )", "deny edit(path: secrets/*)"),
            ("deny edit(path:   secrets/*)", "deny edit(path: secrets/*)"),
            ("deny run(git push* )", "deny run(git push*)"),
            ("deny run(git push *)", "deny run(git push *)"),
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_name_without_a_blank_behind_it_is_nearly_one() {
        let nearly = |text: &str| {
            let rule = text.parse::<Rule>().unwrap();
            rule.near_argument_name().map(str::to_owned)
        };
        assert_eq!(nearly("deny edit(path:secrets/*)").as_deref(), Some("path"));
        assert_eq!(nearly("deny fetch(https://a.b/*)").as_deref(), Some("https"));
        assert_eq!(nearly("deny edit(path : secrets/*)").as_deref(), Some("path"));
        assert_eq!(nearly("deny edit(path=secrets/*)").as_deref(), Some("path"));
        for text in ["deny edit(path: x)", "deny edit(a/b:c)", "deny edit", "deny run(git x:y)"] {
            assert_eq!(nearly(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_rule_says_why() {
        for (text, why) in [
            ("", "is empty"),
            ("run(x", "must end in `)`"),
            ("(x)", "permission is missing"),
            ("run x)", "`(` is missing"),
            ("run()", "pattern is empty"),
            ("run( )", "pattern is empty"),
            ("run(cmd: )", "pattern is empty"),
            ("deny run", "has no blanks"),
            ("deny run(rm *)", "has no blanks"),
            ("run(\"git push *\")", "without quotes"),
            ("run(cmd: \"git push *\")", "without quotes"),
            ("run('git push *')", "without quotes"),
            ("run(`git push *`)", "without quotes"),
            ("run(“git push *”)", "without quotes"),
        ] {
            let error = Rule::parse(Action::Allow, text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!("maybe run".parse::<Rule>().is_err());
    }

    #[test]
    fn rules_come_from_tables() {
        let rule: Rule = serde_json::from_str(
            r#"{"permission": "run", "pattern": "git *", "action": "allow", "locked": true}"#,
        )
        .unwrap();
        assert_eq!(
            (rule.to_string().as_str(), rule.scope, rule.locked),
            ("allow run(git *)", RuleScope::User, true)
        );
    }
}
