//! Waiting for the answer to one ask: the first that comes counts, and silence is no.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::answer::answering;
use super::front::behind_hooks;
use crate::context::Session;
use crate::permission::{Approver, Ask, Settled, Waiting};
use crate::pipeline::core::Core;
use crate::pipeline::turn::Line;
use crate::tool::Definition;

/// Waits for the answer to one ask.
pub(in crate::pipeline) struct Vigil<'a> {
    core: &'a Core,
    waiting: Waiting,
    epoch: watch::Receiver<u64>,
    expires: Instant,
}

impl<'a> Vigil<'a> {
    /// Puts the ask up; where it stands in a `line`, it is shown when its place has come.
    pub(in crate::pipeline) fn begin(
        core: &'a Arc<Core>,
        ask: Ask,
        session: &Session,
        tool: &Definition,
        approver: &Arc<dyn Approver>,
        line: Option<Arc<dyn Line>>,
    ) -> Self {
        let asked = behind_hooks(core, tool, approver, line.clone());
        let waiting = core.desk.put_up(ask, session, approver, asked, answering(core, session));
        if waiting.is_joined()
            && let Some(line) = line
        {
            // It is shown with the other one.
            line.shown();
        }
        let expires = Instant::now() + core.ask_timeout;
        Self { core, waiting, epoch: core.desk.epoch(), expires }
    }

    /// What is asked.
    pub(in crate::pipeline) fn ask(&self) -> &Arc<Ask> {
        self.waiting.ask()
    }

    /// How the ask was settled; `None` when another approval, rule or mode may have settled
    /// the matter, so that it must be looked at again.
    pub(in crate::pipeline) async fn next(&mut self) -> Option<Settled> {
        tokio::select! {
            biased;
            settled = self.waiting.settled() => Some(settled),
            Ok(()) = self.epoch.changed() => None,
            () = tokio::time::sleep_until(self.expires) => {
                self.core.desk.settle(&self.waiting.ask().id, Settled::Expired);
                Some(Settled::Expired)
            }
        }
    }
}
