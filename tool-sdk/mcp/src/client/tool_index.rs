//! Index of the tool names of all servers, to detect descriptions that mention tools of others.
//!
//! Names come and go with the servers, so the lookup happens when a description is shown and not
//! when it was listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tools that are not a server's own: the name in lower case, with the name to report.
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

    /// Returns `names` and the tools of all other servers. A name that the server has too counts as
    /// its own.
    pub(super) fn names_of_others(&self, server: &str, names: BTreeSet<String>) -> OtherToolNames {
        let servers = self.lock_servers();
        let others = servers.iter().filter(|(name, _)| **name != server);
        let others = others.flat_map(|(_, tools)| tools.iter().cloned());
        let mut found: OtherToolNames =
            names.into_iter().chain(others).map(|name| (name.to_lowercase(), name)).collect();
        for tool in servers.get(server).into_iter().flatten() {
            found.remove(&tool.to_lowercase());
        }
        found
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
        let index = ToolNameIndex::default();
        index.set_tools("a", set(&["get_page", "put_page"]));
        index.set_tools("b", set(&["Put_Page", "log_in"]));
        let others = |server: &str, names: &[&str]| -> Vec<String> {
            index.names_of_others(server, set(names)).into_values().collect()
        };
        assert_eq!(others("b", &["log_in", "x"]), ["get_page", "x"]);
        index.remove_server("a");
        assert_eq!(others("b", &["x"]), ["x"]);
        assert_eq!(others("c", &[]), ["log_in", "Put_Page"]);
    }
}
