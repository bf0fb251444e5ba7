//! The answer of a hook: at once, or later.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// The answer of a hook: at once, or later.
///
/// Most hooks have nothing to wait for, and those cost no allocation.
pub struct Step<'a, T>(Stepped<'a, T>);

enum Stepped<'a, T> {
    Now(T),
    Later(Later<'a, T>),
}

/// What gives an answer in time.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<'a, T> Step<'a, T> {
    /// The answer.
    #[must_use]
    pub const fn now(answer: T) -> Self {
        Self(Stepped::Now(answer))
    }

    /// An answer that takes time.
    #[must_use]
    pub fn later(answer: impl Future<Output = T> + Send + 'a) -> Self {
        Self(Stepped::Later(Box::pin(answer)))
    }

    /// The answer, or what gives it.
    #[inline]
    pub(crate) fn answer(self) -> Result<T, Later<'a, T>> {
        match self.0 {
            Stepped::Now(answer) => Ok(answer),
            Stepped::Later(later) => Err(later),
        }
    }

    /// Waits for the answer.
    pub async fn done(self) -> T {
        match self.0 {
            Stepped::Now(answer) => answer,
            Stepped::Later(answer) => answer.await,
        }
    }
}

impl<T> fmt::Debug for Step<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Stepped::Now(_) => "Step::now",
            Stepped::Later(_) => "Step::later",
        })
    }
}
