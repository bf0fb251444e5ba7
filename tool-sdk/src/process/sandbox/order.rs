//! What the host tells the helper, in one argument of its command line.
//!
//! Nothing comes from the environment: that is the child's, and a model may have a say in
//! it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::status::Status;
use super::{Level, Policy, system};

/// The first argument of a program that shall be the helper.
pub(super) const ASKED: &str = "__tool-sdk-sandbox";

/// How the helper confines itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) level: Level,
    pub(super) network: bool,
    pub(super) unix_sockets: bool,
    /// What may be written.
    pub(super) writable: Vec<PathBuf>,
    /// What must not change.
    pub(super) protected: Protected,
    /// What was promised: with less than that, nothing is started. Without it the helper
    /// only says how far it came.
    pub(super) floor: Option<Status>,
}

/// Paths that must not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Protected {
    /// Those that stay where they are, with the folders around them.
    pub(super) near: BTreeSet<PathBuf>,
    /// Those further down, which may be moved together with what is around them: work goes on
    /// there.
    pub(super) deep: BTreeSet<PathBuf>,
}

impl Order {
    /// # Errors
    ///
    /// Fails when a folder cannot be looked into in which names are protected.
    pub(super) fn of(policy: &Policy, floor: Option<Status>) -> io::Result<Self> {
        Ok(Self {
            level: policy.level,
            network: policy.network,
            unix_sockets: policy.unix_sockets,
            writable: policy.writable_folders(),
            protected: Protected::of(policy)?,
            floor,
        })
    }
}

impl Protected {
    /// What is protected for a child with this policy, there or not.
    pub(super) fn of(policy: &Policy) -> io::Result<Self> {
        let mut all = Self { near: policy.always_protected(), ..Self::default() };
        if policy.level == Level::WorkspaceWrite {
            for root in &policy.roots {
                let found = system::protected_in(root)?;
                all.near.extend(found.near);
                all.deep.extend(found.deep);
            }
        }
        // A root may lie in another one.
        all.deep.retain(|path| !all.near.contains(path));
        Ok(all)
    }

    fn contains(&self, path: &PathBuf) -> bool {
        self.near.contains(path) || self.deep.contains(path)
    }

    /// What is in `later` and not in this.
    pub(super) fn missing(&self, later: Self) -> Vec<PathBuf> {
        let all = later.near.into_iter().chain(later.deep);
        all.filter(|path| !self.contains(path)).collect()
    }
}
