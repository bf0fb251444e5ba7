//! Filters the tools for one audience.
//!
//! The lists of the audience and of its agent narrow the registry; then one variant of each group
//! is left. [`model_profile`](super::model_profile) adapts the rest to the model.

use std::sync::Arc;

use super::agent::{AgentProfile, stricter_mode};
use super::model_profile::{self, ModelProfile};
use super::select::{any_forbids_tool, any_selects_tool};
use super::variants::VariantGroup;
use crate::context::Session;
use crate::hook::RegisteredHook;
use crate::name::ToolName;
use crate::permission::{Mode, Ruleset};
use crate::registry::is_in_scope;
use crate::tool::{Definition, ToolDisplay};

/// The audience of a toolset: its session, lists, rules and profiles.
#[derive(Clone, Debug, Default)]
pub(super) struct AudienceFilter {
    pub(super) scopes: Vec<String>,
    pub(super) only: Option<Vec<String>>,
    pub(super) without: Vec<String>,
    pub(super) experimental: Vec<String>,
    /// The tools that count as experimental although their definitions do not say so.
    pub(super) marked_experimental: Vec<String>,
    pub(super) session: Session,
    pub(super) rules: Ruleset,
    pub(super) mode: Mode,
    pub(super) agents: Vec<AgentProfile>,
    pub(super) only_known_agents: bool,
    pub(super) profiles: Vec<ModelProfile>,
    pub(super) variants: Vec<VariantGroup>,
    /// Display metadata of the host, by the name of the tool.
    pub(super) displays: Vec<(String, Arc<ToolDisplay>)>,
    /// Hooks on definitions, in the order in which they run.
    pub(super) hooks: Vec<RegisteredHook>,
}

impl AudienceFilter {
    /// Whether the audience has the tool.
    pub(super) fn admits_tool(&self, definition: &Definition) -> bool {
        let agent = self.agent_profile();
        if agent.is_none() && self.only_known_agents {
            return false;
        }
        self.is_in_scope(definition, agent)
            && self.is_experiment_enabled(definition, agent)
            && self.only.as_deref().is_none_or(|only| any_selects_tool(only, definition))
            && !any_forbids_tool(&self.without, definition)
            && agent.is_none_or(|agent| agent.admits_tool(definition))
            && self.variants.iter().all(|variants| variants.admits_tool(definition))
    }

    /// Returns the effective rules and mode: those of the toolset combined with those of its agent.
    pub(super) fn effective_rules(&self) -> (Ruleset, Mode) {
        let Some(agent) = self.agent_profile() else { return (self.rules.clone(), self.mode) };
        let (mode, ask) = stricter_mode(self.mode, agent.mode.unwrap_or(self.mode));
        // The generated rule comes first, so that all written rules override it.
        let rules = ask.into_iter().chain(self.rules.rules().iter().cloned());
        (Ruleset::new(rules.chain(agent.own_rules())), mode)
    }

    /// Returns the profile of the session's model.
    pub(super) fn model_profile(&self) -> Option<&ModelProfile> {
        model_profile::select_profile(&self.profiles, self.session.model()?)
    }

    /// Returns the display metadata that the host set for a tool.
    pub(super) fn host_display(&self, tool: &ToolName) -> Option<&Arc<ToolDisplay>> {
        self.displays.iter().find(|(name, _)| name == tool.as_str()).map(|(_, display)| display)
    }

    /// Returns the profile of an agent whose rules only make decisions stricter.
    pub(super) fn tightening_profile(&self, agent: &str) -> Option<&AgentProfile> {
        self.agents.iter().find(|known| known.name == agent && known.only_tightens)
    }

    fn agent_profile(&self) -> Option<&AgentProfile> {
        let name = self.session.agent()?;
        self.agents.iter().find(|agent| agent.name == name)
    }

    fn is_in_scope(&self, definition: &Definition, agent: Option<&AgentProfile>) -> bool {
        let agents = agent.map_or(&[][..], |agent| &agent.scopes);
        definition.scopes.is_empty()
            || self.scopes.iter().chain(agents).any(|scope| is_in_scope(definition, scope))
    }

    /// Whether the tool is not experimental, or is enabled.
    fn is_experiment_enabled(&self, definition: &Definition, agent: Option<&AgentProfile>) -> bool {
        let is_experimental = definition.flags.experimental
            || any_forbids_tool(&self.marked_experimental, definition);
        !is_experimental
            || any_selects_tool(&self.experimental, definition)
            || agent.is_some_and(|agent| any_selects_tool(&agent.experimental, definition))
    }
}
