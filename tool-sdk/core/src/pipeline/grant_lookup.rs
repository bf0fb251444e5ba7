//! Looks up which grants cover the resources of a call, once for each permission.
//!
//! A call may touch as many resources as there are grants, so nothing here compares every resource
//! with every grant.

use std::cell::{OnceCell, RefCell};

use super::authorize::grantee;
use super::invocation::Invocation;
use crate::permission::{Grant, GrantIndex, StoredGrants};
use crate::tool::{PreparedCall, Resource};

/// The grants that may cover the resources of a call, at one moment.
pub(super) struct GrantLookup<'a> {
    invocation: &'a Invocation<'a>,
    prepared: &'a dyn PreparedCall,
    /// Further grants that are assumed.
    assumed: &'a [Grant],
    stored: OnceCell<Option<StoredGrants>>,
    by_permission: RefCell<Vec<PermissionGrants>>,
}

/// The grants of one permission.
struct PermissionGrants {
    permission: Option<String>,
    index: GrantIndex,
    /// The tool's own answer, when it evaluates patterns itself.
    by_tool: OnceCell<Option<bool>>,
}

impl<'a> GrantLookup<'a> {
    /// Returns a lookup for the resources of `prepared`; the grants `assumed` count as well.
    pub(super) fn new(
        invocation: &'a Invocation<'a>,
        prepared: &'a dyn PreparedCall,
        assumed: &'a [Grant],
    ) -> Self {
        Self {
            invocation,
            prepared,
            assumed,
            stored: OnceCell::new(),
            by_permission: RefCell::default(),
        }
    }

    /// Whether a grant of the session or of the store covers `resource`.
    pub(super) fn covers(&self, resource: &Resource) -> bool {
        let mut known = self.by_permission.borrow_mut();
        let is_its =
            |known: &PermissionGrants| known.permission.as_deref() == resource.permission();
        let at = known.iter().position(is_its).unwrap_or_else(|| {
            known.push(self.grants_for(resource));
            known.len() - 1
        });
        let PermissionGrants { index: granted, by_tool, .. } = &known[at];
        // It is unknown what a pattern covers of an opaque resource, unless it covers everything.
        let is_judged = !resource.is_opaque();
        let by_tool = || *by_tool.get_or_init(|| covered_by_any(self.prepared, granted));
        // The tool knows better than plain matching what a pattern covers.
        is_judged.then(by_tool).flatten().unwrap_or_else(|| granted.covers(resource))
    }

    fn grants_for(&self, resource: &Resource) -> PermissionGrants {
        let invocation = self.invocation;
        let to = grantee(invocation.definition(), resource);
        let stored = self.stored.get_or_init(|| {
            let stored = invocation.inner.stored_grants(invocation.session);
            if let Some(warning) = stored.as_ref().and_then(|stored| stored.warning.clone()) {
                invocation.inner.warn(
                    invocation.session,
                    &invocation.definition().name,
                    &invocation.origin,
                    warning,
                );
            }
            stored
        });
        let mut patterns = invocation.inner.session_state(invocation.session).grants.patterns(&to);
        patterns.extend(stored.iter().flat_map(|stored| stored.patterns(&to)));
        let assumed = self.assumed.iter().filter(|grant| grant.to == to);
        patterns.extend(assumed.map(|grant| grant.pattern.clone()));
        let permission = resource.permission().map(str::to_owned);
        PermissionGrants { permission, index: GrantIndex::new(patterns), by_tool: OnceCell::new() }
    }
}

/// Whether the tool says that one of the patterns covers the call; `None` when the tool does not
/// evaluate patterns.
fn covered_by_any(prepared: &dyn PreparedCall, granted: &GrantIndex) -> Option<bool> {
    let mut is_said = None;
    for pattern in granted.patterns() {
        match prepared.covered_by(pattern.as_str()) {
            Some(true) => return Some(true),
            said => is_said = is_said.or(said),
        }
    }
    is_said
}
