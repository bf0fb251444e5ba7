//! One stored grant, and when two of them are equal.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::workspace_identity::{FolderIdentity, WorkspaceIdentity};
use super::{Grant, Grantee};

/// A grant that outlives the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredGrant {
    /// The id by which it is revoked.
    pub id: String,
    /// What it grants.
    pub grant: Grant,
    /// The folder in which the grant holds.
    pub workspace: PathBuf,
    /// The identity of that folder, in case another one takes its path.
    folder: FolderIdentity,
    /// When it was granted, in seconds since 1970.
    pub created: u64,
    /// The approval that it came from.
    pub source: GrantSource,
}

impl StoredGrant {
    pub(super) fn new(
        id: String,
        grant: Grant,
        site: &WorkspaceIdentity,
        source: GrantSource,
    ) -> Self {
        let created = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let WorkspaceIdentity { path, folder } = site.clone();
        Self { id, grant, workspace: path, folder, created, source }
    }

    /// Whether the grant holds in `site`.
    pub(super) fn applies_to(&self, site: &WorkspaceIdentity) -> bool {
        self.workspace == site.path && self.folder == site.folder
    }

    /// Whether both grant the same, regardless of when and by whom they were given.
    pub(super) fn is_same_grant(&self, other: &Self) -> bool {
        self.sort_key() == other.sort_key()
    }

    /// The fields that differ most come first, because paths are slow to compare.
    fn sort_key(&self) -> (&str, &Grantee, FolderIdentity, &Path) {
        (self.grant.pattern.as_str(), &self.grant.to, self.folder, &self.workspace)
    }

    fn age_key(&self) -> (u64, &str, &GrantSource) {
        (self.created, &self.id, &self.source)
    }
}

/// The approval from which a grant came.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct GrantSource {
    /// The id of the session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The id of the call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Who answered the approval request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub who: String,
}

impl GrantSource {
    /// Returns the source for an answer about `call` of `session`.
    #[must_use]
    pub fn new(session: impl Into<String>, call: impl Into<String>) -> Self {
        Self { session: session.into(), call: call.into(), who: String::new() }
    }

    /// Sets who answered.
    #[must_use]
    pub fn with_responder(mut self, who: impl Into<String>) -> Self {
        self.who = who.into();
        self
    }
}

/// Returns the grants without duplicates, the oldest first, regardless of their order in
/// `approvals`.
///
/// Of two equal grants the older one is kept.
pub(super) fn dedup_grants(approvals: impl IntoIterator<Item = StoredGrant>) -> Vec<StoredGrant> {
    let mut all: Vec<_> = approvals.into_iter().collect();
    all.sort_by(|a, b| (a.sort_key(), a.age_key()).cmp(&(b.sort_key(), b.age_key())));
    all.dedup_by(|later, kept| later.is_same_grant(kept));
    all.sort_by(|a, b| (a.age_key(), a.sort_key()).cmp(&(b.age_key(), b.sort_key())));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::name::ToolName;

    fn stored_grant() -> impl Strategy<Value = StoredGrant> {
        (0..4_u64, 0..4_u64, 0..3_u64, "[ab]", "[xy]", "[st]").prop_map(
            |(created, id, inode, tool, pattern, session)| StoredGrant {
                id: id.to_string(),
                grant: Grant::new(Grantee::new(ToolName::new(tool).unwrap(), "p"), pattern),
                workspace: PathBuf::from("/w"),
                folder: FolderIdentity::with_inode(inode),
                created,
                source: GrantSource::new(session, ""),
            },
        )
    }

    fn stored_grants() -> impl Strategy<Value = Vec<StoredGrant>> {
        prop::collection::vec(stored_grant(), 0..12)
    }

    proptest! {
        // F77: the result does not depend on which process writes first.
        #[test]
        fn what_is_kept_does_not_depend_on_order((a, b, c) in (stored_grants(), stored_grants(), stored_grants())) {
            let both = |a: &[StoredGrant], b: &[StoredGrant]| {
                dedup_grants(a.iter().chain(b).cloned())
            };
            let ab = both(&a, &b);
            prop_assert_eq!(&ab, &both(&b, &a));
            prop_assert_eq!(&ab, &both(&ab, &b));
            prop_assert_eq!(&ab, &both(&ab, &ab));
            prop_assert_eq!(both(&ab, &c), both(&a, &both(&b, &c)));
            for approval in a.iter().chain(&b) {
                let same = ab.iter().filter(|it| it.is_same_grant(approval)).count();
                prop_assert_eq!(same, 1);
            }
        }
    }
}
