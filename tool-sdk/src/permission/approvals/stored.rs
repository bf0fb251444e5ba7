//! One stored approval, and what makes two of them the same.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::identity::{Identity, Site};
use super::{Grant, Grantee};

/// An approval that outlives the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredApproval {
    /// By what it is revoked.
    pub id: String,
    /// What it grants.
    pub grant: Grant,
    /// The folder where it holds, and nowhere else.
    pub workspace: PathBuf,
    /// Which folder that was, for the day when another one is there.
    folder: Identity,
    /// When it was given, in seconds since 1970.
    pub created: u64,
    /// Where it came from.
    pub source: GrantSource,
}

impl StoredApproval {
    pub(super) fn new(id: String, grant: Grant, site: &Site, source: GrantSource) -> Self {
        let created = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let Site { path, folder } = site.clone();
        Self { id, grant, workspace: path, folder, created, source }
    }

    /// Whether it holds in `site`.
    pub(super) fn holds_in(&self, site: &Site) -> bool {
        self.workspace == site.path && self.folder == site.folder
    }

    /// Whether it says the same, whenever and by whomever it was given.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// What differs most comes first, because paths are slow to compare.
    fn key(&self) -> (&str, &Grantee, Identity, &Path) {
        (self.grant.pattern.as_str(), &self.grant.to, self.folder, &self.workspace)
    }

    fn age(&self) -> (u64, &str, &GrantSource) {
        (self.created, &self.id, &self.source)
    }
}

/// Where an approval came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct GrantSource {
    /// The session that asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The call that was asked about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Who answered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub who: String,
}

impl GrantSource {
    /// An answer to what `call` of `session` asked.
    #[must_use]
    pub fn new(session: impl Into<String>, call: impl Into<String>) -> Self {
        Self { session: session.into(), call: call.into(), who: String::new() }
    }

    /// Says who answered.
    #[must_use]
    pub fn who(mut self, who: impl Into<String>) -> Self {
        self.who = who.into();
        self
    }
}

/// All of these approvals, none twice, the oldest first whatever came first.
///
/// Of two that grant the same, the older one stays.
pub(super) fn distinct(approvals: impl IntoIterator<Item = StoredApproval>) -> Vec<StoredApproval> {
    let mut all: Vec<_> = approvals.into_iter().collect();
    all.sort_by(|a, b| (a.key(), a.age()).cmp(&(b.key(), b.age())));
    all.dedup_by(|later, kept| later.is_same(kept));
    all.sort_by(|a, b| (a.age(), a.key()).cmp(&(b.age(), b.key())));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::name::ToolName;

    fn approval() -> impl Strategy<Value = StoredApproval> {
        (0..4_u64, 0..4_u64, 0..3_u64, "[ab]", "[xy]", "[st]").prop_map(
            |(created, id, inode, tool, pattern, session)| StoredApproval {
                id: id.to_string(),
                grant: Grant::new(Grantee::new(ToolName::new(tool).unwrap(), "p"), pattern),
                workspace: PathBuf::from("/w"),
                folder: Identity::numbered(inode),
                created,
                source: GrantSource::new(session, ""),
            },
        )
    }

    fn list() -> impl Strategy<Value = Vec<StoredApproval>> {
        prop::collection::vec(approval(), 0..12)
    }

    proptest! {
        // F77: whoever writes first, the same is kept.
        #[test]
        fn what_is_kept_does_not_depend_on_order((a, b, c) in (list(), list(), list())) {
            let both = |a: &[StoredApproval], b: &[StoredApproval]| {
                distinct(a.iter().chain(b).cloned())
            };
            let ab = both(&a, &b);
            prop_assert_eq!(&ab, &both(&b, &a));
            prop_assert_eq!(&ab, &both(&ab, &b));
            prop_assert_eq!(&ab, &both(&ab, &ab));
            prop_assert_eq!(both(&ab, &c), both(&a, &both(&b, &c)));
            for approval in a.iter().chain(&b) {
                let same = ab.iter().filter(|it| it.is_same(approval)).count();
                prop_assert_eq!(same, 1);
            }
        }
    }
}
