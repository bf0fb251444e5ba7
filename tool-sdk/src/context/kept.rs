//! What pipelines keep for a session and all its clones.
//!
//! **Invariant:** nothing here knows what is kept.

use std::any::Any;
use std::sync::OnceLock;

/// What pipelines keep for a session, by the pipeline's number: a chain that only grows, so
/// that it is read without a lock. Most sessions have one pipeline.
#[derive(Default)]
pub(super) struct Kept(OnceLock<Box<Link>>);

struct Link {
    pipeline: usize,
    state: Box<dyn Any + Send + Sync>,
    next: Kept,
}

impl Kept {
    #[inline]
    pub(super) fn get<T: Any + Default + Send + Sync>(&self, pipeline: usize) -> &T {
        let mut kept = self;
        loop {
            let link = kept.0.get_or_init(|| Link::new::<T>(pipeline));
            if link.pipeline == pipeline
                && let Some(state) = link.state.downcast_ref()
            {
                return state;
            }
            kept = &link.next;
        }
    }
}

impl Link {
    #[cold]
    fn new<T: Any + Default + Send + Sync>(pipeline: usize) -> Box<Self> {
        Box::new(Self { pipeline, state: Box::new(T::default()), next: Kept::default() })
    }
}
