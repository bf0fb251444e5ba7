//! The tools of workers that are published in the toolset of the host.
//!
//! **Invariant:** a tool whose name is in use is left out, and keeps no other tool out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tool_sdk_core::{RegistryConflict, RegistryError, Tool, Toolset};

use super::WorkersState;
use super::known_workers::SentDefinition;
use super::tool::RemoteTool;

/// A tool, and what was added to the toolset for it.
type PublishedTool = (RemoteTool, Arc<dyn Tool>);

/// The published tools, and those that are left out.
#[derive(Default)]
pub(super) struct PublishedTools {
    /// In the order of their names.
    tools: Vec<PublishedTool>,
    /// Why tools are left out, by the names that they would have.
    left_out: BTreeMap<String, String>,
}

impl PublishedTools {
    /// Returns the hashes of the published definitions, by the names that workers use.
    pub(super) fn hashes(&self) -> HashMap<String, String> {
        let hash =
            |(tool, _): &PublishedTool| (tool.remote_name().to_owned(), tool.hash().to_owned());
        self.tools.iter().map(hash).collect()
    }

    /// Returns why tools are left out, by the names that they would have.
    pub(super) fn left_out(&self) -> &BTreeMap<String, String> {
        &self.left_out
    }

    /// Publishes the tools with these definitions in place of the current ones. The toolset does not
    /// change if they are the same.
    pub(super) fn replace(
        &mut self,
        toolset: &Toolset,
        chosen: &[Arc<SentDefinition>],
        workers: &Arc<WorkersState>,
    ) {
        let mut tools: Vec<PublishedTool> = Vec::new();
        let mut left_out = BTreeMap::new();
        for sent in chosen {
            match self.tools.iter().find(|(tool, _)| tool.hash() == sent.hash) {
                Some(same) => tools.push(same.clone()),
                None => match RemoteTool::new(workers, sent) {
                    Some(tool) => tools.push(tool.publish()),
                    None => {
                        let name = sent.definition.name.to_string();
                        left_out.insert(name, "it can have no name here".to_owned());
                    }
                },
            }
        }
        while !self.has_same_tools(&tools) {
            match toolset.replace_added(&added(&self.tools), added(&tools)) {
                Ok(()) => self.tools = tools.clone(),
                Err(error) => self.remove_conflicting(&mut tools, &error, &mut left_out),
            }
        }
        for (name, reason) in &left_out {
            if self.left_out.get(name) != Some(reason) {
                tracing::warn!("the tool `{name}` of workers is left out: {reason}");
            }
        }
        self.left_out = left_out;
    }

    /// Removes the published tools from the toolset.
    pub(super) fn remove_from(&mut self, toolset: &Toolset) {
        // Removing causes no conflict.
        let _ = toolset.replace_added(&added(&self.tools), Vec::new());
        *self = Self::default();
    }

    fn has_same_tools(&self, tools: &[PublishedTool]) -> bool {
        tools.len() == self.tools.len()
            && tools.iter().zip(&self.tools).all(|(new, old)| Arc::ptr_eq(&new.1, &old.1))
    }

    fn is_published(&self, tool: &Arc<dyn Tool>) -> bool {
        self.tools.iter().any(|(_, added)| Arc::ptr_eq(added, tool))
    }

    /// Moves at least one tool that a conflict is about from `tools` to `left_out`.
    fn remove_conflicting(
        &self,
        tools: &mut Vec<PublishedTool>,
        error: &RegistryError,
        left_out: &mut BTreeMap<String, String>,
    ) {
        let mut reasons: BTreeMap<usize, String> = BTreeMap::new();
        for conflict in error.conflicts() {
            for position in self.find_conflicting(tools, conflict) {
                reasons.entry(position).or_insert_with(|| one_line(conflict));
            }
        }
        if reasons.is_empty() {
            // A conflict that is about no tool of the workers.
            reasons = (0..tools.len()).map(|position| (position, one_line(error))).collect();
        }
        for (position, reason) in reasons.into_iter().rev() {
            let (tool, _) = tools.remove(position);
            left_out.insert(tool.definition().name.to_string(), reason);
        }
    }

    /// Returns the positions of the tools that cannot be added because of a conflict. Of several tools
    /// of the workers that have one name, one keeps it: one that is published already, if there is one.
    fn find_conflicting(&self, tools: &[PublishedTool], conflict: &RegistryConflict) -> Vec<usize> {
        let (name, claims) = match conflict {
            RegistryConflict::DuplicateName { name, claims } => (name, claims.len()),
            RegistryConflict::Unusable { name, .. }
            | RegistryConflict::NotAnObject { name, .. } => {
                let own = tools.iter().position(|(tool, _)| tool.definition().name == **name);
                return own.into_iter().collect();
            }
            _ => return Vec::new(),
        };
        let own_claims = |tool: &RemoteTool| {
            let definition = tool.definition();
            let names = std::iter::once(&definition.name).chain(&definition.aliases);
            names.filter(|own| own.as_str().eq_ignore_ascii_case(name)).count()
        };
        let counts: Vec<usize> = tools.iter().map(|(tool, _)| own_claims(tool)).collect();
        let mut conflicting: Vec<usize> = (0..tools.len()).filter(|at| counts[*at] > 0).collect();
        if counts.iter().sum::<usize>() == claims && conflicting.len() > 1 {
            let rank = |position: &&usize| {
                let (tool, added) = &tools[**position];
                let is_name = tool.definition().name.as_str().eq_ignore_ascii_case(name);
                (!self.is_published(added), !is_name)
            };
            let kept = conflicting.iter().min_by_key(rank).copied();
            conflicting.retain(|position| Some(*position) != kept);
        }
        conflicting
    }
}

fn added(tools: &[PublishedTool]) -> Vec<Arc<dyn Tool>> {
    tools.iter().map(|(_, added)| Arc::clone(added)).collect()
}

/// Formats a conflict as one line.
fn one_line(conflict: &impl ToString) -> String {
    conflict.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
