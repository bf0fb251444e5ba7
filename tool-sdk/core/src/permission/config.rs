//! Rules as a configuration file contains them.
//!
//! **Invariant:** a configuration file cannot set the scope or the origin of its rules; the host
//! that reads it does.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::rule::quoting_error;
use super::{Action, InvalidRule, Pattern, Rule, RuleScope};

/// The rules in a configuration file, in any format that serde reads.
///
/// # Examples
///
/// ```
/// use tool_sdk::{RuleScope, RulesConfig};
///
/// // In TOML, `deny = ["run(curl *)"]` and a table `[[rules]]`.
/// let written: RulesConfig = serde_json::from_str(
///     r#"{
///         "deny": ["run(curl *)"],
///         "rules": [{ "permission": "save", "argument": "path", "pattern": "*.md", "action": "allow" }]
///     }"#,
/// )?;
/// let rules = written.into_rules(RuleScope::User, "my.toml")?;
/// assert_eq!(rules[0].to_string(), "deny run(curl *)");
/// assert_eq!(rules[1].to_string(), "allow save(path: *.md)");
/// assert!(rules.iter().all(|rule| rule.scope == RuleScope::User && rule.origin == "my.toml"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
// A misspelt `deny` would deny nothing.
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RulesConfig {
    /// Rules that allow, each as `permission(pattern)`.
    pub allow: Vec<String>,
    /// Rules that ask for an approval.
    pub ask: Vec<String>,
    /// Rules that deny.
    pub deny: Vec<String>,
    /// Rules in their long form.
    pub rules: Vec<RuleConfig>,
}

impl RulesConfig {
    /// Returns the rules with this `scope` and `origin`: the lists `allow`, `ask` and `deny`, and
    /// then the rules in their long form. Of all rules that match, the last decides.
    ///
    /// # Errors
    ///
    /// Fails when one of them is not a valid rule; then none of them applies.
    pub fn into_rules(self, scope: RuleScope, origin: &str) -> Result<Vec<Rule>, InvalidRule> {
        let lists =
            [(Action::Allow, self.allow), (Action::Ask, self.ask), (Action::Deny, self.deny)];
        let short = lists.into_iter().flat_map(|(action, list)| {
            list.into_iter().map(move |text| Rule::parse(action, &text))
        });
        let rules = short.chain(self.rules.into_iter().map(RuleConfig::into_rule));
        rules.map(|rule| Ok(rule?.scope(scope).origin(origin))).collect()
    }
}

/// A rule in its long form.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
// A misspelt `pattern` would be a rule for everything.
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RuleConfig {
    /// The permission, or the tool, that the rule is about.
    pub permission: String,
    /// The resources that the rule matches; all resources by default. Blanks around it are ignored.
    pub pattern: Option<String>,
    /// The argument that `pattern` is matched against, instead of the resources. Blanks around it
    /// are ignored.
    pub argument: Option<String>,
    /// What the rule decides.
    pub action: Action,
    /// Whether later rules cannot override it.
    #[serde(default)]
    pub locked: bool,
}

impl RuleConfig {
    /// Returns the rule, with the default scope.
    ///
    /// # Errors
    ///
    /// Fails when the rule could never match anything.
    pub fn into_rule(self) -> Result<Rule, InvalidRule> {
        for (key, text) in [
            ("permission", Some(&self.permission)),
            ("pattern", self.pattern.as_ref()),
            ("argument", self.argument.as_ref()),
        ] {
            if text.is_some_and(|text| text.trim().is_empty()) {
                let advice = match key {
                    "argument" => "leave it out where the rule is about none",
                    _ => "write `*` for everything",
                };
                return Err(InvalidRule::new(format!("`{key}` is empty; {advice}")));
            }
        }
        let permission = self.permission.trim();
        if permission.contains(char::is_whitespace) {
            return Err(InvalidRule::new(format!("`{permission}` has blanks; no permission does")));
        }
        if self.argument.is_some() && self.pattern.is_none() {
            return Err(InvalidRule::new("`argument` needs a `pattern` beside it"));
        }
        let pattern = self.pattern.as_deref().map(str::trim);
        if let Some(why) = pattern.and_then(quoting_error) {
            return Err(InvalidRule::new(format!("`{}`: {why}", pattern.unwrap_or_default())));
        }
        let pattern = pattern.map_or_else(Pattern::any, Pattern::new);
        let mut rule = Rule::new(self.action, permission, pattern);
        rule.argument = self.argument.map(|argument| argument.trim().to_owned());
        Ok(if self.locked { rule.locked() } else { rule })
    }
}

/// Deserializes the rules of a profile, which users and programs write. It is as strict as
/// [`RuleConfig`], but also accepts the scope and the origin of a stored rule.
pub(crate) fn deserialize_profile_rules<'de, D>(from: D) -> Result<Vec<Rule>, D::Error>
where
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ProfileRule {
        permission: String,
        pattern: Option<String>,
        argument: Option<String>,
        action: Action,
        #[serde(default)]
        locked: bool,
        #[serde(default)]
        scope: RuleScope,
        #[serde(default)]
        origin: String,
    }
    let read = |kept: ProfileRule| {
        let ProfileRule { permission, pattern, argument, action, locked, scope, origin } = kept;
        let rule = RuleConfig { permission, pattern, argument, action, locked }.into_rule()?;
        Ok(rule.scope(scope).origin(origin))
    };
    let kept = Vec::<ProfileRule>::deserialize(from)?;
    kept.into_iter().map(read).collect::<Result<_, InvalidRule>>().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_rules(written: serde_json::Value) -> Result<Vec<Rule>, String> {
        let written: RulesConfig =
            serde_json::from_value(written).map_err(|error| error.to_string())?;
        written.into_rules(RuleScope::User, "my.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn the_reader_sets_the_scope_of_rules() {
        let rules = parse_rules(json!({
            "deny": ["put"],
            "allow": ["run(git *)"],
            "rules": [{ "permission": "run", "action": "ask", "locked": true }],
        }))
        .unwrap();
        let told: Vec<_> = rules.iter().map(|rule| (rule.to_string(), rule.locked)).collect();
        assert_eq!(
            told,
            [
                ("allow run(git *)".into(), false),
                ("deny put".into(), false),
                ("ask run".into(), true)
            ]
        );
        assert!(
            rules.iter().all(|it| (it.scope, it.origin.as_str()) == (RuleScope::User, "my.toml"))
        );
    }

    // F72
    #[test]
    fn blanks_around_a_pattern_do_not_count() {
        let rule = json!({ "permission": " edit ", "pattern": " secrets/* ", "action": "deny" });
        let rules =
            parse_rules(json!({ "deny": [" edit ( secrets/* ) "], "rules": [rule] })).unwrap();
        let told: Vec<_> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["deny edit(secrets/*)"; 2]);
    }

    #[test]
    fn what_claims_more_or_never_matches_is_refused() {
        let rule = |key: &str, value: &str| {
            let mut rule = json!({ "permission": "run", "action": "allow" });
            rule[key] = value.into();
            json!({ "rules": [rule] })
        };
        for (written, why) in [
            (rule("scope", "session"), "unknown field `scope`"),
            (rule("origin", "x"), "unknown field `origin`"),
            (rule("pattern", " "), "`pattern` is empty"),
            (rule("permission", "deny run"), "has blanks"),
            (rule("argument", "x"), "needs a `pattern`"),
            (rule("pattern", "\"git push *\""), "without quotes"),
            (json!({ "deny": ["deny put"] }), "has no blanks"),
            (json!({ "dney": ["put"] }), "unknown field `dney`"),
        ] {
            let error = parse_rules(written).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
