//! The grants of one session, in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Grant, Grantee};
use crate::name::ToolName;
use crate::permission::Pattern;
use crate::tool::Resource;

/// The grants of all tools that hold until the session ends.
#[derive(Debug, Default)]
pub(crate) struct SessionGrants(Mutex<Vec<Grant>>);

impl SessionGrants {
    /// Adds a grant, unless it is there already.
    pub(crate) fn add(&self, grant: Grant) {
        let mut grants = self.lock_grants();
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }

    /// Whether a grant lets `to` act on `resource`.
    pub(crate) fn covers(&self, to: &Grantee, resource: &Resource) -> bool {
        self.lock_grants().iter().any(|grant| grant.covers(to, resource))
    }

    /// Returns the patterns granted to `to`, for tools that evaluate them themselves.
    pub(crate) fn patterns(&self, to: &Grantee) -> Vec<Pattern> {
        let grants = self.lock_grants();
        grants.iter().filter(|grant| grant.to == *to).map(|grant| grant.pattern.clone()).collect()
    }

    /// Returns all grants, the oldest first.
    pub(crate) fn list(&self) -> Vec<Grant> {
        self.lock_grants().clone()
    }

    /// Revokes the grants of `tool`, or all grants.
    pub(crate) fn revoke(&self, tool: Option<&ToolName>) {
        self.lock_grants().retain(|grant| tool.is_some_and(|tool| grant.to.tool != *tool));
    }

    fn lock_grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grantee(tool: &'static str) -> Grantee {
        Grantee::new(ToolName::from_static(tool), tool)
    }

    // F76, F88
    #[test]
    fn grants_hold_for_their_tool_until_they_are_cleared() {
        let (any, other) = (grantee("whatever"), grantee("another"));
        let approvals = SessionGrants::default();
        for _ in 0..2 {
            approvals.add(Grant::new(any.clone(), "a *"));
        }
        approvals.add(Grant::new(other.clone(), "b"));

        assert_eq!(approvals.patterns(&any), [Pattern::new("a *")]);
        assert!(approvals.covers(&any, &Resource::new("a 1")));
        assert!(!approvals.covers(&other, &Resource::new("a 1")));

        approvals.revoke(Some(&any.tool));
        assert!(!approvals.covers(&any, &Resource::new("a 1")));
        assert!(approvals.covers(&other, &Resource::new("b")));

        approvals.revoke(None);
        assert!(!approvals.covers(&other, &Resource::new("b")));
    }

    // F84, F86
    #[test]
    fn only_what_was_meant_is_covered() {
        let run = || grantee("run").with_definition("v1");
        let grant = Grant::new(run(), "git push *");
        let any = Grant::new(run(), "*");
        for (grant, to, resource, covered) in [
            (&grant, run(), Resource::new("git push origin main"), true),
            (&grant, run(), Resource::new("git push"), true),
            (&grant, run(), Resource::new("rm -rf y"), false),
            (&grant, run(), Resource::new("x/git push"), false),
            (&grant, grantee("run"), Resource::new("git push"), false),
            (&grant, grantee("run").with_definition("v2"), Resource::new("git push"), false),
            (&grant, grantee("ran").with_definition("v1"), Resource::new("git push"), false),
            (&grant, run(), Resource::new("git push").with_permission("network"), false),
            (&grant, run(), Resource::new("git push x").opaque(), false),
            (&any, run(), Resource::new("git push x").opaque(), true),
            (&any, run(), Resource::ANY, true),
        ] {
            assert_eq!(grant.covers(&to, &resource), covered, "{to:?} {resource:?}");
        }
    }

    #[test]
    fn a_file_is_covered_under_either_spelling() {
        let edit = grantee("edit");
        let file = Resource::path("src/a.rs", "/w/src/a.rs");
        for (pattern, covered) in [
            ("src/*", true),
            ("/w/src/*", true),
            ("a.rs", false),
            // F72: as in a rule that allows.
            ("src/", true),
            ("./src//*", true),
            ("/w/lib/../src/a.rs", true),
            ("sr/", false),
            ("./a.rs", false),
        ] {
            let grant = Grant::new(edit.clone(), pattern);
            assert_eq!(grant.covers(&edit, &file), covered, "{pattern}");
        }
    }
}
