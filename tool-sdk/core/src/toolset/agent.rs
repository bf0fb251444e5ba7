//! The tools, rules and mode of one kind of agent.
//!
//! A profile narrows: its lists only remove tools, and its mode only makes the toolset's stricter.
//! Its rules follow those of the user. It adds only the scopes of the agent and the experimental
//! tools that are enabled for it.
//!
//! **Invariant:** nothing here depends on how the agent was started.

use serde::{Deserialize, Serialize};

use super::select::{any_forbids_tool, any_selects_tool};
use crate::permission::{Action, Mode, Pattern, Rule, RuleScope, deserialize_profile_rules};
use crate::tool::Definition;

/// The tools, rules and mode of one kind of agent in a toolset.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Action, AgentProfile, Mode, Registry, Rule, Session, Toolset, tool, tools};
///
/// /// Look something up.
/// #[tool(read)]
/// fn look_up() {}
///
/// /// Throw something away.
/// #[tool(write, destructive)]
/// fn throw_away() {}
///
/// let reviewer = AgentProfile::new("reviewer").only(["look_*"]).mode(Mode::Plan);
/// let registry = Registry::builder().add(tools![look_up, throw_away]).build()?;
/// let toolset = Toolset::new(registry).with_agent(reviewer);
///
/// let reviewing = toolset.for_session(&Session::new("docs").with_agent("reviewer"));
/// assert!(reviewing.get("look_up").is_some());
/// assert!(reviewing.get("throw_away").is_none());
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentProfile {
    /// The name of the agent in a session.
    pub name: String,
    /// The allowed tools, as [patterns](super::Toolset#patterns); all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
    /// The removed tools; wins over `only`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The rules of the agent; they follow those of the user.
    #[serde(
        default,
        deserialize_with = "deserialize_profile_rules",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub rules: Vec<Rule>,
    /// The mode of the agent, if it is stricter than that of the toolset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The scopes of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The experimental tools that are enabled for the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experimental: Vec<String>,
    /// Whether the rules of the agent only make decisions stricter, as for an agent that a project
    /// brings: each call is also decided without them, and the stricter decision holds.
    #[serde(skip)]
    pub only_tightens: bool,
    /// The agent in whose place this one stands, with [`only_tightens`](Self::only_tightens): calls
    /// are also decided as if that agent made them.
    #[serde(skip)]
    pub replaced_agent: Option<String>,
}

impl AgentProfile {
    /// Creates a profile that allows everything that the toolset has.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            only: None,
            without: Vec::new(),
            rules: Vec::new(),
            mode: None,
            scopes: Vec::new(),
            experimental: Vec::new(),
            only_tightens: false,
            replaced_agent: None,
        }
    }

    /// Allows only these tools.
    #[must_use]
    pub fn only<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.only.get_or_insert_default().extend(tools.into_iter().map(Into::into));
        self
    }

    /// Removes these tools.
    #[must_use]
    pub fn without<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.without.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Adds rules. Their scope becomes that of the agent.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Sets a stricter mode.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Adds a scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Enables these experimental tools.
    #[must_use]
    pub fn experimental<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.experimental.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Lets the rules of the agent only make decisions stricter.
    #[must_use]
    pub fn only_tightens(mut self) -> Self {
        self.only_tightens = true;
        self
    }

    /// Lets the rules of the agent only make the decisions stricter that `agent` would get, in whose
    /// place it stands.
    #[must_use]
    pub fn only_tightens_agent(mut self, agent: impl Into<String>) -> Self {
        self.replaced_agent = Some(agent.into());
        self.only_tightens()
    }

    /// Whether the lists of the profile allow the tool. A denial beats a permission.
    pub(super) fn admits_tool(&self, definition: &Definition) -> bool {
        self.only.as_deref().is_none_or(|only| any_selects_tool(only, definition))
            && !any_forbids_tool(&self.without, definition)
    }

    pub(super) fn own_rules(&self) -> impl Iterator<Item = Rule> {
        self.rules.iter().cloned().map(|rule| rule.scope(RuleScope::Agent))
    }
}

/// Combines two modes: the stricter one, and a rule for what it leaves open.
///
/// If one mode asks before everything and the other allows only reads, neither is stricter. Then
/// writes are denied, and reads need approval unless a rule matches them.
pub(super) fn stricter_mode(one: Mode, other: Mode) -> (Mode, Option<Rule>) {
    let mode = if mode_strictness(other) > mode_strictness(one) { other } else { one };
    let asks = mode != Mode::Strict && [one, other].contains(&Mode::Strict);
    let ask = || {
        Rule::new(Action::Ask, Pattern::any(), Pattern::any())
            .scope(RuleScope::Default)
            .origin("mode strict")
    };
    (mode, asks.then(ask))
}

const fn mode_strictness(mode: Mode) -> u8 {
    match mode {
        Mode::Bypass => 0,
        Mode::Auto => 1,
        Mode::Strict => 2,
        Mode::Plan | Mode::Explore => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::{PolicyInput, Ruleset};
    use crate::risk::RiskClass;

    /// Returns the action for a tool of this class without a matching rule.
    fn settled_action(mode: Mode, rule: Option<Rule>, class: RiskClass) -> Action {
        PolicyInput {
            tool_rules: &Ruleset::new(rule),
            rules_for_permission: &|_| Ruleset::default(),
            file_rules_for_permission: &|_| Vec::new(),
            modes: mode.into(),
            trusts_safe_commands: true,
            risk_class: class,
            resources: None,
            arguments: &|_: &str| None,
            approval_required: None,
            is_granted: &|_| false,
            writable_roots: None,
            holds_pipeline_state: &|_| false,
            overrides: &[],
        }
        .decide()
        .action
    }

    // F104: an agent never does more without approval than its host.
    #[test]
    fn combined_mode_is_as_strict_as_each() {
        for one in Mode::ALL {
            for other in Mode::ALL {
                let (mode, rule) = stricter_mode(one, other);
                for class in [RiskClass::Read, RiskClass::Write, RiskClass::Execute] {
                    let both = settled_action(mode, rule.clone(), class);
                    let strictest =
                        settled_action(one, None, class).max(settled_action(other, None, class));
                    assert_eq!(both, strictest, "{one} and {other}: {class:?}");
                }
            }
        }
    }

    #[test]
    fn deserializes_agent_profiles() {
        let profile: AgentProfile = serde_json::from_str(
            r#"{
                "name": "reviewer",
                "only": ["look_*"],
                "mode": "plan",
                "rules": [{"permission": "look_up", "action": "allow", "scope": "session"}]
            }"#,
        )
        .unwrap();
        let rule = Rule::new(Action::Allow, "look_up", "*").scope(RuleScope::Session);
        let wanted = AgentProfile::new("reviewer").only(["look_*"]).mode(Mode::Plan).rules([rule]);
        assert_eq!(profile, wanted);
        assert!(profile.own_rules().all(|rule| rule.scope == RuleScope::Agent));

        // A misspelt list must not leave all tools allowed.
        assert!(serde_json::from_str::<AgentProfile>(r#"{"name": "a", "onyl": []}"#).is_err());

        let written = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<AgentProfile>(&written).unwrap(), profile);
    }

    // F72, F104: rules of an agent are parsed like all others.
    #[test]
    fn parses_rules_of_profiles() {
        let read = |rule: &str| {
            let text = format!(r#"{{"name": "a", "rules": [{{"action": "deny", {rule}}}]}}"#);
            let profile: Result<AgentProfile, _> = serde_json::from_str(&text);
            profile.map(|it| it.rules[0].to_string()).map_err(|error| error.to_string())
        };
        let rule = r#""permission": " look_up ", "pattern": " secrets/* ""#;
        assert_eq!(read(rule).unwrap(), "deny look_up(secrets/*)");
        for (rule, why) in [
            (r#""permission": "look_up", "pattern": "'secrets/*'""#, "without quotes"),
            (r#""permission": "look_up", "pattern": " ""#, "`pattern` is empty"),
            (r#""permission": "look_up", "argument": "path""#, "needs a `pattern`"),
            (r#""permission": "deny look_up""#, "has blanks"),
        ] {
            let error = read(rule).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
