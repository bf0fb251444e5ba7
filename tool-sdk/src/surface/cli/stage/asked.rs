//! Builds the hooks, the approver and the forms of the environment.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use super::super::guard::Answers;
use super::super::terminal::{AtTerminal, Floor, FormsAtTerminal};
use super::super::{Io, config, style};
use crate::context::Session;
use crate::hook::external::ExternalHooks;
use crate::permission::{Approver, Ask, Reply};

/// Returns the configured hooks, to run in `folder`, and prints their warnings.
pub(super) fn hooks(
    configured: Option<config::Hooks>,
    folder: PathBuf,
    io: &mut Io<'_>,
) -> Option<Arc<ExternalHooks>> {
    let config::Hooks { commands, remarks } = configured?;
    for remark in remarks {
        io.say(style::plain(&format!("warning: hooks.{remark}")));
    }
    (!commands.is_empty()).then(|| Arc::new(commands.in_folder(folder)))
}

/// Returns the approver for the prompt mode; `None` denies every call that needs approval.
pub(super) fn approver(answers: Answers, floor: &Floor, io: &Io<'_>) -> Option<Arc<dyn Approver>> {
    match (answers, &io.console) {
        (Answers::Yes, _) => Some(Arc::new(Yes)),
        (Answers::Terminal, Some(console)) => {
            Some(Arc::new(AtTerminal::new(Arc::clone(console), floor.clone())))
        }
        (Answers::Terminal, None) | (Answers::Nobody, _) => None,
    }
}

/// Lets the user fill in forms of tools at the terminal.
pub(super) fn with_forms(
    session: Session,
    answers: Answers,
    floor: &Floor,
    io: &Io<'_>,
) -> Session {
    match (answers, &io.console) {
        (Answers::Terminal, Some(console)) => {
            let forms = FormsAtTerminal::new(Arc::clone(console), floor.clone());
            session.with_inquiries(Arc::new(forms))
        }
        _ => session,
    }
}

/// Approves every call once.
struct Yes;

impl Approver for Yes {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        ask.answered_by("--yes");
        Box::pin(std::future::ready(Some(Reply::Once)))
    }
}
