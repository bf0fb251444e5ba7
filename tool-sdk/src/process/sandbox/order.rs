//! The request that the host sends to the helper: JSON in one command line argument.
//!
//! **Invariant:** the helper reads nothing from the environment, which belongs to the child and
//! may contain variables that a model requested.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::status::Status;
use super::{Level, Policy, system};

/// The first argument of a program that is started as the helper.
pub(super) const ASKED: &str = "__tool-sdk-sandbox";

/// The restrictions that the helper applies to itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) level: Level,
    pub(super) network: bool,
    pub(super) unix_sockets: bool,
    /// The writable folders.
    pub(super) writable: Vec<PathBuf>,
    /// The protected paths in the writable folders.
    pub(super) protected: Protected,
    /// The status that must be reached, or the program is not started. `None` for a probe: the
    /// helper only reports its status.
    pub(super) floor: Option<Status>,
}

/// Paths in writable folders that must not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Protected {
    /// Paths near the root, which cannot be moved; neither can the folders around them.
    pub(super) near: BTreeSet<PathBuf>,
    /// Paths further down, which may be moved together with a folder around them, so that work on
    /// that folder stays possible.
    pub(super) deep: BTreeSet<PathBuf>,
}

impl Order {
    /// Builds the request for a child with `policy`.
    ///
    /// # Errors
    ///
    /// Fails when a writable root cannot be read.
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
    /// Returns the protected paths for a child with `policy`, existing or not.
    pub(super) fn of(policy: &Policy) -> io::Result<Self> {
        let mut all = Self { near: policy.always_protected(), ..Self::default() };
        if policy.level == Level::WorkspaceWrite {
            for root in &policy.roots {
                let found = system::protected_in(root)?;
                all.near.extend(found.near);
                all.deep.extend(found.deep);
            }
        }
        // Roots may be nested.
        all.deep.retain(|path| !all.near.contains(path));
        Ok(all)
    }

    fn contains(&self, path: &PathBuf) -> bool {
        self.near.contains(path) || self.deep.contains(path)
    }

    /// Returns the paths of `later` that are not in `self`.
    pub(super) fn missing(&self, later: Self) -> Vec<PathBuf> {
        let all = later.near.into_iter().chain(later.deep);
        all.filter(|path| !self.contains(path)).collect()
    }
}
