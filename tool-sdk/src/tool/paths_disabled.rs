//! The stub for builds without the feature `workspace`: no argument holds a path.

use std::any::{Any, TypeId};

use super::{Resource, Table};
use crate::context::Context;
#[cfg(feature = "hooks")]
use crate::context::Session;

/// Returns no paths.
#[cfg(feature = "hooks")]
pub(super) fn absolute_paths(_: impl FnOnce(), _: &Session) -> Vec<(String, String)> {
    Vec::new()
}

/// Returns `false`: no type holds paths.
pub(super) fn type_holds_paths(_: TypeId) -> bool {
    false
}

#[derive(Debug, Default)]
pub(crate) struct ArgPaths;

impl ArgPaths {
    pub(crate) fn may_hold_paths(_: &[&mut dyn Any]) -> bool {
        false
    }

    pub(crate) fn collect<T>(decode: impl FnOnce() -> T) -> (T, Self) {
        (decode(), Self)
    }

    pub(crate) fn for_table(self, _: &Table) -> Self {
        self
    }

    pub(crate) fn fill_defaults(self, _: &Table, _: &mut [&mut dyn Any]) -> Self {
        self
    }

    #[expect(clippy::unused_self, reason = "same signature as with the feature `workspace`")]
    pub(crate) fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
        None
    }
}
