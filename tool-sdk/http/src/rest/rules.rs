//! `GET /v1/rules`: the mode, and the permission rules in the order of their evaluation.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tool_sdk_core::{Action, Rule, RuleScope, Toolset};

use super::caller::AdministrationCaller;
use super::service::RestService;

/// The body of `GET /v1/rules`.
#[derive(Debug, Serialize)]
pub(super) struct PolicyBody {
    /// What decides when no rule matches.
    mode: &'static str,
    /// The last one that matches decides, unless one is locked.
    rules: Vec<RuleBody>,
}

/// A rule, and the agent for whose calls alone it applies.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct RuleBody {
    permission: String,
    pattern: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<String>,
    action: Action,
    scope: RuleScope,
    locked: bool,
    origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

impl RuleBody {
    fn new(rule: &Rule, agent: Option<&str>) -> Self {
        Self {
            permission: rule.permission.as_str().to_owned(),
            pattern: rule.pattern.as_str().to_owned(),
            argument: rule.argument.clone(),
            action: rule.action,
            scope: rule.scope,
            locked: rule.locked,
            origin: rule.origin.clone(),
            agent: agent.map(str::to_owned),
        }
    }

    /// Whether this rule for every call is the same as `other`, which is part of an agent's rules.
    fn covers(&self, other: &Self) -> bool {
        self.agent.is_none() && Self { agent: None, ..other.clone() } == *self
    }
}

/// `GET /v1/rules`
pub(super) async fn list_rules(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
) -> Json<PolicyBody> {
    let toolset = service.pipeline.toolset();
    let rules = applicable_rules(toolset);
    Json(PolicyBody { mode: toolset.view().mode().as_str(), rules })
}

/// Returns the rules for every call, then those of each agent alone, and those of plugins.
fn applicable_rules(toolset: &Toolset) -> Vec<RuleBody> {
    let mut rules: Vec<RuleBody> = Vec::new();
    for (agent, view) in toolset.agent_views() {
        for rule in view.rules().rules() {
            let rule = RuleBody::new(rule, agent.as_deref());
            if !rules.iter().any(|known| known == &rule || known.covers(&rule)) {
                rules.push(rule);
            }
        }
    }
    for plugin in toolset.plugins() {
        rules.extend(plugin.rules().iter().map(|rule| RuleBody::new(rule, None)));
    }
    rules
}
