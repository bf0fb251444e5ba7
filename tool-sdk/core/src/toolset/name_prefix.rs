//! The prefixes of tool names that sources of tools reserve in a toolset.
//!
//! A source whose names get their prefix from its own name may share that prefix with another
//! source: `-` and `_` are equal in tool names. Such a source is refused before it has tools.
//!
//! **Invariant:** a prefix is reserved for one source at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Toolset;

/// The reserved prefixes, with the names of their sources.
#[derive(Debug, Default)]
pub(super) struct ReservedPrefixes(Arc<Mutex<BTreeMap<String, String>>>);

impl ReservedPrefixes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A prefix that is reserved for one source of tools, until this value is dropped.
#[derive(Debug)]
pub struct PrefixReservation {
    prefixes: Weak<Mutex<BTreeMap<String, String>>>,
    prefix: String,
}

impl Drop for PrefixReservation {
    fn drop(&mut self) {
        if let Some(prefixes) = self.prefixes.upgrade() {
            ReservedPrefixes(prefixes).lock().remove(&self.prefix);
        }
    }
}

/// A prefix that another source has reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "only crates of the SDK use it")]
pub struct ReservedPrefix {
    /// The name of that source.
    pub source: String,
}

impl Toolset {
    /// Reserves the tool names that begin with `prefix` for `source`.
    ///
    /// # Errors
    ///
    /// Fails when the prefix is reserved already.
    #[doc(hidden)]
    pub fn reserve_prefix(
        &self,
        prefix: &str,
        source: &str,
    ) -> Result<PrefixReservation, ReservedPrefix> {
        let mut reserved = self.prefixes.lock();
        if let Some(source) = reserved.get(prefix) {
            return Err(ReservedPrefix { source: source.clone() });
        }
        reserved.insert(prefix.to_owned(), source.to_owned());
        drop(reserved);
        let prefixes = Arc::downgrade(&self.prefixes.0);
        Ok(PrefixReservation { prefixes, prefix: prefix.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn a_prefix_has_one_source_until_its_reservation_is_dropped() {
        let toolset = Toolset::new(Registry::default());
        let first = toolset.reserve_prefix("remote__a__", "a").unwrap();
        let taken = toolset.reserve_prefix("remote__a__", "b").unwrap_err();
        assert_eq!(taken.source, "a");
        let _other = toolset.reserve_prefix("remote__b__", "b").unwrap();
        drop(first);
        toolset.reserve_prefix("remote__a__", "b").unwrap();
    }
}
