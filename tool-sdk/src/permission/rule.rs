//! One rule: what it speaks of, what it says, and where it comes from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Pattern;

/// What a rule says of the calls that it matches.
///
/// The order is that of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "there is nothing between yes, no and ask")]
pub enum Action {
    /// Run it.
    Allow,
    /// Ask somebody.
    Ask,
    /// Refuse it; nothing lifts that.
    Deny,
}

impl Action {
    /// `allow`, `ask` or `deny`.
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

/// Whose rule it is; rules of later scopes stand behind those of earlier ones.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the order of composition is fixed")]
pub enum Scope {
    /// The host's defaults.
    Default,
    /// The user's configuration.
    #[default]
    User,
    /// The agent's.
    Agent,
    /// This session's.
    Session,
}

impl fmt::Display for Scope {
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
/// As a table it keeps all that is said here, whose it is included; what others wrote is read as
/// [`WrittenRules`](crate::WrittenRules), which claim nothing of that kind.
///
/// As text it is `permission(pattern)`, `permission(argument: pattern)` or `permission`
/// alone, which means everything of that permission.
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
    /// The permission, or the tool, that it speaks of.
    pub permission: Pattern,
    /// The subjects that it matches.
    #[serde(default = "Pattern::any", skip_serializing_if = "Pattern::is_any")]
    pub pattern: Pattern,
    /// The argument that `pattern` is about, instead of the subjects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// What it says.
    pub action: Action,
    /// Whose it is.
    #[serde(default)]
    pub scope: Scope,
    /// Later rules do not override it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// Where it is written, for messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
}

impl Rule {
    /// A rule about the subjects of a permission.
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
            scope: Scope::default(),
            locked: false,
            origin: String::new(),
        }
    }

    /// A rule as it is written on the command line.
    ///
    /// # Errors
    ///
    /// Fails when the text is empty, its parentheses do not match, or the permission has blanks.
    pub fn parse(action: Action, text: &str) -> Result<Self, InvalidRule> {
        let invalid = |why| InvalidRule::of(text, why);
        let text = text.trim();
        let named = |permission: &str| match permission.contains(char::is_whitespace) {
            // `deny = ["deny run"]` would speak of nothing that there is.
            true => {
                Err(invalid("a permission has no blanks, and what the rule says stands beside it"))
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
        let mut rule = match named_argument(inside) {
            Some((argument, pattern)) => Self {
                argument: Some(argument.to_owned()),
                ..Self::new(action, permission.trim(), pattern)
            },
            None => Self::new(action, permission.trim(), inside),
        };
        if inside.is_empty() {
            rule.pattern = Pattern::any();
        }
        Ok(rule)
    }

    /// Sets whose it is.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets where it is written.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }

    /// Keeps later rules from overriding it.
    #[must_use]
    pub fn locked(mut self) -> Self {
        self.locked = true;
        self
    }
}

/// `name: pattern`, where the name could be an argument's and the blank says that it is
/// no part of an address or a drive.
fn named_argument(inside: &str) -> Option<(&str, &str)> {
    let (name, pattern) = inside.split_once(": ")?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = !name.is_empty()
        && name.chars().all(word)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    is_name.then_some((name, pattern.trim_start()))
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

/// `allow RULE`, `ask RULE` or `deny RULE`, as [`Display`](fmt::Display) writes it.
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
                return Err(InvalidRule::of(text, why));
            }
        };
        Self::parse(action, rest)
    }
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRule(String);

impl InvalidRule {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn of(text: &str, why: &str) -> Self {
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
        assert!(Rule::parse(Action::Deny, "run()").unwrap().pattern.is_any());
    }

    #[test]
    fn what_is_no_rule_says_why() {
        for (text, why) in [
            ("", "is empty"),
            ("run(x", "must end in `)`"),
            ("(x)", "permission is missing"),
            ("run x)", "`(` is missing"),
            ("deny run", "has no blanks"),
            ("deny run(rm *)", "has no blanks"),
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
            ("allow run(git *)", Scope::User, true)
        );
    }
}
