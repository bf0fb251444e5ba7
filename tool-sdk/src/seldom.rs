//! What only few have: of most there is nothing to drop, which costs one look where they end.

use std::fmt;
use std::mem::{ManuallyDrop, take};
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

/// Room for what only few have.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Seldom<R: Room>(ManuallyDrop<R>);

/// Where something may be.
pub(crate) trait Room: Default {
    fn is_free(&self) -> bool;
}

impl<T> Room for Option<Box<T>> {
    #[inline(always)]
    fn is_free(&self) -> bool {
        self.is_none()
    }
}

impl<T> Room for OnceLock<T> {
    #[inline(always)]
    fn is_free(&self) -> bool {
        self.get().is_none()
    }
}

impl<R: Room> Deref for Seldom<R> {
    type Target = R;

    #[inline(always)]
    fn deref(&self) -> &R {
        &self.0
    }
}

impl<R: Room> DerefMut for Seldom<R> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut R {
        &mut self.0
    }
}

impl<R: Room> Drop for Seldom<R> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.0.is_free() {
            gone(take(&mut *self.0));
        }
    }
}

#[cold]
#[inline(never)]
fn gone<R>(_: R) {}

impl<R: Room + fmt::Debug> fmt::Debug for Seldom<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_there_is_dropped_once() {
        let shared = Arc::new(());
        let mut room = Seldom::<Option<Box<_>>>::default();
        *room = Some(Box::new(Arc::clone(&shared)));
        drop(take(&mut room));
        assert_eq!(Arc::strong_count(&shared), 1);
        let once = Seldom::<OnceLock<_>>::default();
        once.get_or_init(|| Arc::clone(&shared));
        assert_eq!(Arc::strong_count(&shared), 2);
        drop(once);
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
