//! Per-session state of pipelines, shared by all clones of a session.
//!
//! **Invariant:** nothing here depends on the type of the state.

use std::any::Any;
use std::sync::OnceLock;

/// The states of a session by the number of the pipeline: a linked list that only grows, so that
/// it is read without a lock. Most sessions have one pipeline.
#[derive(Default)]
pub(super) struct SessionStates(OnceLock<Box<StateNode>>);

struct StateNode {
    pipeline: usize,
    state: Box<dyn Any + Send + Sync>,
    next: SessionStates,
}

impl SessionStates {
    #[inline]
    pub(super) fn get_or_insert<T: Any + Default + Send + Sync>(&self, pipeline: usize) -> &T {
        match self.0.get().and_then(|link| link.state_for(pipeline)) {
            Some(state) => state,
            None => self.find_state(pipeline),
        }
    }

    #[inline(never)]
    fn find_state<T: Any + Default + Send + Sync>(&self, pipeline: usize) -> &T {
        let mut kept = self;
        loop {
            let link = kept.0.get_or_init(|| StateNode::new::<T>(pipeline));
            match link.state_for(pipeline) {
                Some(state) => return state,
                None => kept = &link.next,
            }
        }
    }
}

impl StateNode {
    #[inline]
    fn state_for<T: Any>(&self, pipeline: usize) -> Option<&T> {
        (self.pipeline == pipeline).then(|| self.state.downcast_ref())?
    }

    #[cold]
    fn new<T: Any + Default + Send + Sync>(pipeline: usize) -> Box<Self> {
        Box::new(Self { pipeline, state: Box::new(T::default()), next: SessionStates::default() })
    }
}
