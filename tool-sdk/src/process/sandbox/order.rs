//! What the host tells the helper, in one argument of its command line.
//!
//! Nothing comes from the environment: that is the child's, and a model may have a say in
//! it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::status::Status;
use super::{Level, Policy};

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
    /// The folders in which names are protected.
    pub(super) roots: BTreeSet<PathBuf>,
    /// What must not change.
    pub(super) protected: BTreeSet<PathBuf>,
    /// What was promised: with less than that, nothing is started. Without it the helper
    /// only says how far it came.
    pub(super) floor: Option<Status>,
}

impl Order {
    pub(super) fn of(policy: &Policy, floor: Option<Status>) -> Self {
        Self {
            level: policy.level,
            network: policy.network,
            unix_sockets: policy.unix_sockets,
            writable: policy.writable_folders(),
            roots: policy.roots.clone(),
            protected: policy.always_protected(),
            floor,
        }
    }
}
