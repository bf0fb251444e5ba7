//! The definitions of workers' tools, for a person who reviews them before a tool runs.
//!
//! **Invariant:** a definition is only pinned if its whole text is what the person was shown.

use std::sync::Arc;

use serde::Serialize;
use tool_sdk_core::{PrivateFileError, Risk};

use super::WorkersState;
use super::known_workers::SentDefinition;

/// The definition of a tool, beside the one that is pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DefinitionReview {
    /// The name of the tool at the host.
    pub tool: String,
    /// The description of the tool, as models read it.
    pub description: String,
    /// What the workers say that the tool may do.
    pub risk: Risk,
    /// Whether the definition is pinned already, so that a call does not ask because of it.
    pub is_pinned: bool,
    /// Whether no definition of the tool is pinned. The difference is then the whole definition.
    pub is_first: bool,
    /// The whole definition, as readable text.
    pub text: String,
    /// The difference to the pinned definition, as a unified diff; empty if the definition is pinned.
    pub difference: String,
    /// How many workers offer the tool in another definition.
    pub others: usize,
}

impl WorkersState {
    /// Returns the definitions of all tools.
    pub(super) fn review_definitions(&self) -> Vec<DefinitionReview> {
        self.chosen_definitions().iter().filter_map(|sent| self.review(sent)).collect()
    }

    /// Pins the definitions that `shown` holds if they are still what the workers offer; returns
    /// whether they are.
    pub(super) fn pin_reviewed(
        &self,
        shown: &[DefinitionReview],
    ) -> Result<bool, PrivateFileError> {
        let Some(pins) = &self.config.pins else { return Ok(true) };
        let chosen = self.chosen_definitions();
        let mut reviewed = Vec::new();
        for review in shown {
            let is_same = |sent: &&Arc<SentDefinition>| {
                self.review(sent)
                    .is_some_and(|now| (&now.tool, &now.text) == (&review.tool, &review.text))
            };
            match chosen.iter().find(is_same) {
                Some(sent) => reviewed.push(sent),
                None => return Ok(false),
            }
        }
        for sent in reviewed {
            let id = (self.config.namespace.as_str(), sent.definition.name.as_str());
            pins.pin_tool(None, id, &sent.snapshot())?;
        }
        Ok(true)
    }

    fn chosen_definitions(&self) -> Vec<Arc<SentDefinition>> {
        let published = self.lock_published().hashes();
        self.lock_known().choose_definitions(&published)
    }

    fn review(&self, sent: &SentDefinition) -> Option<DefinitionReview> {
        let namespace = &self.config.namespace;
        let (tool, snapshot) = (&sent.definition.name, sent.snapshot());
        let id = (namespace.as_str(), tool.as_str());
        let pins = self.config.pins.as_ref();
        let difference = pins.and_then(|pins| pins.diff_since_pinned(None, id, &snapshot));
        Some(DefinitionReview {
            tool: namespace.tool_name(tool)?.to_string(),
            description: sent.definition.description.to_string(),
            risk: sent.definition.risk,
            is_pinned: difference.is_none(),
            is_first: difference.as_ref().is_some_and(|difference| difference.is_first),
            text: snapshot.to_text(),
            difference: difference.map(|difference| difference.diff).unwrap_or_default(),
            others: self.lock_known().count_other_definitions(tool.as_str(), &sent.hash),
        })
    }
}
