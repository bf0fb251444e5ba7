//! The agents of plugins that are loaded and unloaded while the program runs.
//!
//! **Invariant:** the profile of an agent stays in the toolset when its plugin is unloaded, because an
//! agent without a profile would have more tools.

use std::sync::{Arc, PoisonError};

use tool_sdk_core::{PluginHost, PluginPart, PluginScope};

use super::SubagentService;
use super::record::SubagentRecord;
use crate::agents::{AgentCatalog, AgentDefinition, AgentOrigin};

impl SubagentService {
    /// Changes the agents that can be started; returns those that there were.
    fn change_catalog(
        &self,
        change: impl FnOnce(&AgentCatalog) -> AgentCatalog,
    ) -> Arc<AgentCatalog> {
        let mut catalog = self.0.catalog.write().unwrap_or_else(PoisonError::into_inner);
        let changed = Arc::new(change(&catalog));
        std::mem::replace(&mut catalog, changed)
    }
}

/// Adds the agents of a plugin to those that can be started.
impl PluginHost for SubagentService {
    fn part(&self) -> PluginPart {
        PluginPart::Agents
    }

    async fn attach(&self, scope: &PluginScope) -> Vec<String> {
        let folders = scope.agent_folders();
        let before = self.change_catalog(|catalog| {
            folders
                .iter()
                .fold(catalog.clone(), |catalog, folder| catalog.with_plugin_folder(folder))
        });
        let after = self.catalog();
        let added = after.agents().filter(|agent| before.get(agent.name()).is_none());
        let mut names = Vec::new();
        for agent in added {
            // The pipeline refuses nothing that an agent of a file has: it brings no tools.
            self.0.pipeline.toolset().set_agent(agent.profile.clone());
            names.push(format!("`{}`", agent.name()));
        }
        let problems = after.problems().iter().skip(before.problems().len()).cloned();
        let added = format!("Its agents can be started now: {}", names.join(", "));
        (!names.is_empty()).then_some(added).into_iter().chain(problems).collect()
    }

    async fn detach(&self, scope: &PluginScope) -> Vec<String> {
        let folders = scope.agent_folders();
        self.change_catalog(|catalog| {
            folders
                .iter()
                .fold(catalog.clone(), |catalog, folder| catalog.without_plugin_folder(folder))
        });
        let is_of_plugin = |agent: &AgentDefinition| match &agent.origin {
            AgentOrigin::Plugin(path) => folders.iter().any(|folder| path.starts_with(folder)),
            _ => false,
        };
        let ending = {
            let mut records = self.records();
            let (ending, kept): (Vec<Arc<SubagentRecord>>, _) =
                records.drain(..).partition(|record| is_of_plugin(record.definition()));
            *records = kept;
            ending
        };
        for record in ending {
            record.cancel_run();
            record.wait_until_ended().await;
            self.forget_below(record.session_id());
        }
        Vec::new()
    }
}
