//! Which tools the servers of a host have, by the servers' own names.
//!
//! Names come and go with the servers, so that what one says of another's tools is looked for
//! whenever somebody is shown what it says, and not when it happened to be listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tools of all servers; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl Roster {
    /// Says which tools a server has now.
    pub(super) fn set(&self, server: &str, tools: BTreeSet<String>) {
        self.servers().insert(server.to_owned(), tools);
    }

    /// Forgets a server.
    pub(super) fn remove(&self, server: &str) {
        self.servers().remove(server);
    }

    /// Adds to `names` the tools of all other servers; what the server has as well is its own.
    pub(super) fn strangers(&self, server: &str, mut names: BTreeSet<String>) -> BTreeSet<String> {
        let servers = self.servers();
        let others = servers.iter().filter(|(name, _)| **name != server);
        names.extend(others.flat_map(|(_, tools)| tools.iter().cloned()));
        let own = servers.get(server);
        names.retain(|name| !own.is_some_and(|own| own.contains(name)));
        names
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn strangers_are_the_tools_that_only_others_have() {
        let roster = Roster::default();
        roster.set("a", set(&["get_page", "put_page"]));
        roster.set("b", set(&["put_page", "log_in"]));
        assert_eq!(roster.strangers("b", set(&["log_in", "x"])), set(&["get_page", "x"]));
        roster.remove("a");
        assert_eq!(roster.strangers("b", set(&["x"])), set(&["x"]));
        assert_eq!(roster.strangers("c", set(&[])), set(&["log_in", "put_page"]));
    }
}
