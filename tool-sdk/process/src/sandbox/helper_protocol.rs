//! The request that the host sends to the helper: JSON in one command line argument.
//!
//! **Invariant:** the helper reads nothing from the environment, which belongs to the child and
//! may contain variables that a model requested.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::status::SandboxStatus;
use super::{SandboxLevel, SandboxPolicy, system};

/// The first argument of a program that is started as the helper.
pub(super) const HELPER_ARG: &str = "__tool-sdk-sandbox";

/// The restrictions that the helper applies to itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HelperRequest {
    pub(super) level: SandboxLevel,
    pub(super) network: bool,
    pub(super) unix_sockets: bool,
    /// The writable folders.
    pub(super) writable: Vec<PathBuf>,
    /// The protected paths in the writable folders.
    pub(super) protected: ProtectedPaths,
    /// The paths to cover; `None` if the status need not say whether paths can be covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unreadable: Option<BTreeSet<PathBuf>>,
    /// The status that must be reached, or the program is not started. `None` for a probe: the
    /// helper only reports its status.
    #[serde(rename = "floor")]
    pub(super) required_status: Option<SandboxStatus>,
}

/// Paths in writable folders that must not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProtectedPaths {
    /// Paths near the root, which cannot be moved; neither can the folders around them.
    pub(super) near: BTreeSet<PathBuf>,
    /// Paths further down, which may be moved together with a folder around them, so that work on
    /// that folder stays possible.
    pub(super) deep: BTreeSet<PathBuf>,
}

impl HelperRequest {
    /// Builds the request for a child with `policy`.
    ///
    /// # Errors
    ///
    /// Fails when a writable root cannot be read.
    pub(super) fn for_policy(
        policy: &SandboxPolicy,
        floor: Option<SandboxStatus>,
    ) -> io::Result<Self> {
        Ok(Self {
            level: policy.level,
            network: policy.network,
            unix_sockets: policy.unix_sockets,
            writable: policy.writable_folders(),
            protected: ProtectedPaths::for_policy(policy)?,
            unreadable: policy.unreadable.as_ref().map(|unreadable| unreadable.paths().clone()),
            required_status: floor,
        })
    }
}

impl ProtectedPaths {
    /// Returns the protected paths for a child with `policy`, existing or not.
    pub(super) fn for_policy(policy: &SandboxPolicy) -> io::Result<Self> {
        let mut all = Self { near: policy.always_protected(), ..Self::default() };
        if policy.level == SandboxLevel::WorkspaceWrite {
            for root in &policy.writable_roots {
                let found = system::find_protected(root)?;
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
    pub(super) fn new_in(&self, later: Self) -> Vec<PathBuf> {
        let all = later.near.into_iter().chain(later.deep);
        all.filter(|path| !self.contains(path)).collect()
    }
}
