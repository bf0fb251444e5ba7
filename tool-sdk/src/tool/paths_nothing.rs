//! Stands where tools have no folders, and so no paths among their arguments.

use std::any::{Any, TypeId};

use super::{Subject, Table};
use crate::context::Context;
#[cfg(feature = "hooks")]
use crate::context::Session;

/// None.
#[cfg(feature = "hooks")]
pub(super) fn absolute(_: impl FnOnce(), _: &Session) -> Vec<(String, String)> {
    Vec::new()
}

/// No argument holds one.
pub(super) fn are_in(_: TypeId) -> bool {
    false
}

#[derive(Debug, Default)]
pub(in crate::tool) struct Paths;

impl Paths {
    #[inline(always)]
    pub(in crate::tool) fn may_be_in(_: &[&mut dyn Any]) -> bool {
        false
    }

    #[inline(always)]
    pub(in crate::tool) fn among<T>(decode: impl FnOnce() -> T) -> (T, Self) {
        (decode(), Self)
    }

    #[inline(always)]
    pub(in crate::tool) fn of(self, _: &Table) -> Self {
        self
    }

    #[inline(always)]
    pub(in crate::tool) fn with_defaults(self, _: &Table, _: &mut [&mut dyn Any]) -> Self {
        self
    }

    #[inline(always)]
    #[expect(clippy::unused_self, reason = "where there are folders, there are paths")]
    pub(in crate::tool) fn is_empty(&self) -> bool {
        true
    }

    #[inline(always)]
    #[expect(clippy::unused_self, reason = "where there are folders, there are paths")]
    pub(in crate::tool) fn subjects(&self, _: &Context) -> Option<Vec<Subject>> {
        None
    }
}
