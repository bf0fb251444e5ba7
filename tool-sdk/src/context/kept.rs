//! What pipelines keep for a session and all its clones.
//!
//! **Invariant:** nothing here knows what is kept.

use std::sync::OnceLock;

/// What pipelines keep for a session, by the pipeline's number: a chain that only grows, so
/// that it is read without a lock. Most sessions have one pipeline.
pub(super) struct Kept<T>(OnceLock<Box<Link<T>>>);

struct Link<T> {
    pipeline: usize,
    state: T,
    next: Kept<T>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: Default> Kept<T> {
    #[inline]
    pub(super) fn get(&self, pipeline: usize) -> &T {
        match self.0.get() {
            Some(link) if link.pipeline == pipeline => &link.state,
            _ => self.search(pipeline),
        }
    }

    #[inline(never)]
    fn search(&self, pipeline: usize) -> &T {
        let mut kept = self;
        loop {
            let link = kept.0.get_or_init(|| Link::new(pipeline));
            if link.pipeline == pipeline {
                return &link.state;
            }
            kept = &link.next;
        }
    }
}

impl<T: Default> Link<T> {
    #[cold]
    fn new(pipeline: usize) -> Box<Self> {
        Box::new(Self { pipeline, state: T::default(), next: Kept::default() })
    }
}
