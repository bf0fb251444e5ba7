//! The tools that a worker offers, with their definitions as the services API lists them.
//!
//! **Invariant:** the hash of a tool is that of the text which hosts read.

use std::collections::{BTreeMap, HashMap};

use tool_sdk_core::internal::sha256_hex;
use tool_sdk_core::{ToolSource, Toolset};

use crate::error::RemoteError;
use crate::protocol::DEFINITION;

/// How much of the largest message the list of all tools may take.
const MAX_SHARE: usize = 2;

/// A tool that is offered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OfferedDefinition {
    pub(super) name: String,
    /// The definition as JSON.
    text: String,
    pub(super) hash: String,
}

impl OfferedDefinition {
    /// Returns the metadata of the tool's endpoint.
    pub(super) fn metadata(&self) -> HashMap<String, String> {
        HashMap::from([(DEFINITION.to_owned(), self.text.clone())])
    }
}

/// The tools that are offered, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToolOffer(BTreeMap<String, OfferedDefinition>);

impl ToolOffer {
    /// Returns the tools of a toolset, without those that other workers run.
    pub(super) fn from_toolset(toolset: &Toolset) -> Result<Self, RemoteError> {
        let view = toolset.view();
        let mut offered = BTreeMap::new();
        for definition in view.definitions() {
            if matches!(definition.source, ToolSource::Remote { .. }) {
                continue;
            }
            let name = definition.name.to_string();
            let mut definition = definition.clone();
            // The same tool at another line is the same tool.
            definition.place = None;
            let text = serde_json::to_string(&definition)
                .map_err(|error| RemoteError::Offer(format!("`{name}`: {error}")))?;
            let hash = sha256_hex(&text);
            offered.insert(name.clone(), OfferedDefinition { name, text, hash });
        }
        Ok(Self(offered))
    }

    /// Fails when the list of all tools would not fit into one message.
    pub(super) fn check_size(&self, max_payload: usize) -> Result<(), RemoteError> {
        let size: usize = self.iter().map(|tool| tool.text.len()).sum();
        match size * MAX_SHARE > max_payload {
            false => Ok(()),
            true => Err(RemoteError::Offer(format!(
                "their definitions have {size} bytes, and the NATS server takes messages of \
                 {max_payload}; offer fewer tools, or raise `max_payload` of the server"
            ))),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &OfferedDefinition> {
        self.0.values()
    }

    /// Whether a tool with this name and definition is offered.
    pub(super) fn has_tool(&self, name: &str, hash: &str) -> bool {
        self.0.get(name).is_some_and(|tool| tool.hash == hash)
    }
}
