//! Index of the tool names of all servers, to detect descriptions that mention tools of others.
//!
//! Names come and go with the servers, so the lookup happens when a description is shown and not
//! when it was listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tool_mentions::SERVER_SEPARATORS;

/// The tools that are not a server's own: every spelling in lower case, with the name to report.
pub(super) type OtherToolNames = BTreeMap<String, String>;

/// The tools of all servers, by the servers' own names; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolNameIndex(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl ToolNameIndex {
    /// Replaces the tools of a server.
    pub(super) fn set_tools(&self, server: &str, tools: BTreeSet<String>) {
        self.lock_servers().insert(server.to_owned(), tools);
    }

    /// Removes a server.
    pub(super) fn remove_server(&self, server: &str) {
        self.lock_servers().remove(server);
    }

    /// Returns `names` and the tools of all other servers, with and without their server's name.
    /// A name that the server has too counts as its own, unless the server's name is in front.
    pub(super) fn names_of_others(&self, server: &str, names: BTreeSet<String>) -> OtherToolNames {
        let servers = self.lock_servers();
        let others = || servers.iter().filter(|(name, _)| **name != server);
        let others_tools = others().flat_map(|(_, tools)| tools.iter().cloned());
        let mut strangers: OtherToolNames =
            names.into_iter().chain(others_tools).map(|name| (name.to_lowercase(), name)).collect();
        for tool in servers.get(server).into_iter().flatten() {
            strangers.remove(&tool.to_lowercase());
        }
        for (other, tools) in others() {
            for tool in tools {
                let joined =
                    SERVER_SEPARATORS.map(|by| format!("{other}{by}{tool}").to_lowercase());
                strangers.extend(joined.map(|name| (name, format!("{other}/{tool}"))));
            }
        }
        strangers
    }

    fn lock_servers(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<String>>> {
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
    fn own_tools_are_not_listed_as_others() {
        let roster = ToolNameIndex::default();
        roster.set_tools("a", set(&["get_page", "put_page"]));
        roster.set_tools("b", set(&["Put_Page", "log_in"]));
        let strangers = |server: &str, names: &[&str]| {
            let mut told: Vec<String> =
                roster.names_of_others(server, set(names)).into_values().collect();
            told.sort();
            told.dedup();
            told
        };
        assert_eq!(strangers("b", &["log_in", "x"]), ["a/get_page", "a/put_page", "get_page", "x"]);
        roster.remove_server("a");
        assert_eq!(strangers("b", &["x"]), ["x"]);
        assert_eq!(strangers("c", &[]), ["Put_Page", "b/Put_Page", "b/log_in", "log_in"]);
        let spellings = roster.names_of_others("c", set(&[]));
        for name in ["b/put_page", "b:put_page", "b::put_page", "b.put_page", "b__put_page"] {
            assert_eq!(spellings[name], "b/Put_Page");
        }
    }
}
