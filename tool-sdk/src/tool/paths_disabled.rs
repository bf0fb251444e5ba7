//! Stands where tools have no folders, and so no paths among their arguments.

use std::any::{Any, TypeId};

use super::{Resource, Table};
use crate::context::Context;
#[cfg(feature = "hooks")]
use crate::context::Session;

/// None.
#[cfg(feature = "hooks")]
pub(super) fn absolute_paths(_: impl FnOnce(), _: &Session) -> Vec<(String, String)> {
    Vec::new()
}

/// No argument holds one.
pub(super) fn type_holds_paths(_: TypeId) -> bool {
    false
}

#[derive(Debug, Default)]
pub(in crate::tool) struct ArgPaths;

impl ArgPaths {
    pub(in crate::tool) fn may_hold_paths(_: &[&mut dyn Any]) -> bool {
        false
    }

    pub(in crate::tool) fn collect<T>(decode: impl FnOnce() -> T) -> (T, Self) {
        (decode(), Self)
    }

    pub(in crate::tool) fn for_table(self, _: &Table) -> Self {
        self
    }

    pub(in crate::tool) fn fill_defaults(self, _: &Table, _: &mut [&mut dyn Any]) -> Self {
        self
    }

    #[expect(clippy::unused_self, reason = "where there are folders, there are paths")]
    pub(in crate::tool) fn is_empty(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, reason = "where there are folders, there are paths")]
    pub(in crate::tool) fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
        None
    }
}
