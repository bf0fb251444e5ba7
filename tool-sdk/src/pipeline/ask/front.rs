//! Hooks in front of whoever is asked.

use std::pin::Pin;
use std::sync::Arc;

use crate::hook::Hook;
use crate::permission::{Approver, Ask, Reply};
use crate::pipeline::core::Core;
use crate::tool::Definition;

/// `approver`, behind the hooks that look at calls of `tool`.
pub(super) fn behind_hooks(
    core: &Core,
    tool: &Definition,
    approver: &Arc<dyn Approver>,
) -> Arc<dyn Approver> {
    let hooks = core.hooks.iter().filter(|registered| registered.sees(tool));
    let hooks: Vec<_> = hooks.map(|registered| Arc::clone(&registered.hook)).collect();
    match hooks.is_empty() {
        true => Arc::clone(approver),
        false => Arc::new(Behind { hooks, approver: Arc::clone(approver) }),
    }
}

/// An approver behind hooks. They are put in front only when it is asked: what panics then has
/// said no.
struct Behind {
    /// The first of them is asked first.
    hooks: Vec<Arc<dyn Hook>>,
    approver: Arc<dyn Approver>,
}

impl Approver for Behind {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        let in_front = |inner, hook: &Arc<dyn Hook>| Arc::clone(hook).approver(inner);
        self.hooks.iter().rev().fold(Arc::clone(&self.approver), in_front).ask(ask)
    }
}
