//! Which tools the servers of a host have, by the servers' own names.
//!
//! Names come and go with the servers, so that what one says of another's tools is looked for
//! whenever somebody is shown what it says, and not when it happened to be listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::mentions::JOINED_BY;

/// Names of tools that are not a server's own, under all that a text may call them by, in lower
/// case.
pub(super) type Strangers = BTreeMap<String, String>;

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

    /// The `names` and the tools of all other servers, alone and with their servers. What the
    /// server has as well is its own, unless it is said whose it is.
    pub(super) fn strangers(&self, server: &str, names: BTreeSet<String>) -> Strangers {
        let servers = self.servers();
        let others = || servers.iter().filter(|(name, _)| **name != server);
        let others_tools = others().flat_map(|(_, tools)| tools.iter().cloned());
        let mut strangers: Strangers =
            names.into_iter().chain(others_tools).map(|name| (name.to_lowercase(), name)).collect();
        for tool in servers.get(server).into_iter().flatten() {
            strangers.remove(&tool.to_lowercase());
        }
        for (other, tools) in others() {
            for tool in tools {
                let joined = JOINED_BY.map(|by| format!("{other}{by}{tool}").to_lowercase());
                strangers.extend(joined.map(|name| (name, format!("{other}/{tool}"))));
            }
        }
        strangers
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
        roster.set("b", set(&["Put_Page", "log_in"]));
        let strangers = |server: &str, names: &[&str]| {
            let mut told: Vec<String> =
                roster.strangers(server, set(names)).into_values().collect();
            told.sort();
            told.dedup();
            told
        };
        assert_eq!(strangers("b", &["log_in", "x"]), ["a/get_page", "a/put_page", "get_page", "x"]);
        roster.remove("a");
        assert_eq!(strangers("b", &["x"]), ["x"]);
        assert_eq!(strangers("c", &[]), ["Put_Page", "b/Put_Page", "b/log_in", "log_in"]);
        let spellings = roster.strangers("c", set(&[]));
        for name in ["b/put_page", "b:put_page", "b::put_page", "b.put_page", "b__put_page"] {
            assert_eq!(spellings[name], "b/Put_Page");
        }
    }
}
