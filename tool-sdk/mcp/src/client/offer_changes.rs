//! Announces to clients of this program what changed in the offers of foreign servers.
//!
//! **Invariant:** the server of this program hears of changes under the URIs that it shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::broadcast;

use super::naming;
use super::remote::OfferChange;

/// How many changes a slow receiver may be behind, before it misses the oldest.
const CAPACITY: usize = 256;

/// The channels on which changes are announced.
#[derive(Clone, Debug)]
pub(super) struct OfferChannels {
    /// URIs of resources, as clients of this program see them.
    pub(super) resources: broadcast::Sender<String>,
    pub(super) resource_lists: broadcast::Sender<()>,
    pub(super) prompt_lists: broadcast::Sender<()>,
}

impl Default for OfferChannels {
    fn default() -> Self {
        let (resources, _) = broadcast::channel(CAPACITY);
        let ((resource_lists, _), (prompt_lists, _)) =
            (broadcast::channel(CAPACITY), broadcast::channel(CAPACITY));
        Self { resources, resource_lists, prompt_lists }
    }
}

impl OfferChannels {
    /// Announces a change of a server. Without receivers, nothing happens.
    pub(super) fn announce(&self, server: &str, change: OfferChange) {
        match change {
            OfferChange::ResourceList => drop(self.resource_lists.send(())),
            OfferChange::PromptList => drop(self.prompt_lists.send(())),
            OfferChange::Resource(uri) => {
                drop(self.resources.send(naming::passed_uri(server, &uri)));
            }
        }
    }
}

/// How many subscribers each resource of a server has.
#[derive(Debug, Default)]
pub(super) struct WatchCounts(Mutex<BTreeMap<String, usize>>);

impl WatchCounts {
    /// Counts a subscriber; returns whether it is the first one.
    pub(super) fn add(&self, uri: &str) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Forgets a subscriber; returns whether it was the last one.
    pub(super) fn remove(&self, uri: &str) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = counts.get_mut(uri) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            counts.remove(uri);
        }
        is_last
    }

    pub(super) fn uris(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_watched_until_its_last_subscriber_is_gone() {
        let counts = WatchCounts::default();
        assert!(counts.add("a") && !counts.add("a"));
        assert!(!counts.remove("a") && counts.remove("a"));
        assert!(!counts.remove("a"), "there is none");
        assert!(counts.uris().is_empty());
    }
}
