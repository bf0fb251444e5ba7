//! What stands in front of whoever is asked: hooks, and behind them the questions of the same batch
//! that come first.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use crate::hook::Hook;
use crate::permission::{Approver, Ask, Reply};
use crate::pipeline::core::Core;
use crate::pipeline::turn::Line;
use crate::tool::Definition;

type Answer = Pin<Box<dyn Future<Output = Option<Reply>> + Send>>;

/// `approver`, behind the hooks that look at calls of `tool`, and in its place in `line`.
pub(super) fn behind_hooks(
    core: &Core,
    tool: &Definition,
    approver: &Arc<dyn Approver>,
    line: Option<Arc<dyn Line>>,
) -> Arc<dyn Approver> {
    let hooks = core.hooks.iter().filter(|registered| registered.sees(tool));
    let hooks: Vec<_> = hooks.map(|registered| Arc::clone(&registered.hook)).collect();
    let approver = Arc::clone(approver);
    let approver = match &line {
        None => approver,
        Some(line) => Arc::new(InLine { line: Arc::clone(line), approver }),
    };
    match hooks.is_empty() {
        true => approver,
        false => Arc::new(Behind { hooks, approver, line }),
    }
}

/// An approver behind hooks. They are put in front only when it is asked: what panics then has
/// said no.
struct Behind {
    /// The first of them is asked first.
    hooks: Vec<Arc<dyn Hook>>,
    approver: Arc<dyn Approver>,
    line: Option<Arc<dyn Line>>,
}

impl Approver for Behind {
    fn ask(&self, ask: Arc<Ask>) -> Answer {
        let in_front = |inner, hook: &Arc<dyn Hook>| Arc::clone(hook).approver(inner);
        let asking = self.hooks.iter().rev().fold(Arc::clone(&self.approver), in_front).ask(ask);
        let Some(line) = self.line.clone() else { return asking };
        Box::pin(async move {
            let reply = asking.await;
            // Perhaps a hook asked nobody, and leaves the answer to others.
            line.shown();
            reply
        })
    }
}

/// An approver who is asked once those before it in the line were.
struct InLine {
    line: Arc<dyn Line>,
    approver: Arc<dyn Approver>,
}

impl Approver for InLine {
    fn ask(&self, ask: Arc<Ask>) -> Answer {
        let (line, approver) = (Arc::clone(&self.line), Arc::clone(&self.approver));
        Box::pin(async move {
            Arc::clone(&line).come().await;
            let mut asking = approver.ask(ask);
            // Whoever asks one question after the other has taken this one in by then.
            let first = poll_fn(|task| Poll::Ready(asking.as_mut().poll(task))).await;
            line.shown();
            match first {
                Poll::Ready(reply) => reply,
                Poll::Pending => asking.await,
            }
        })
    }
}
