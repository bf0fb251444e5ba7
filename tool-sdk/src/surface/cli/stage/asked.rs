//! Who is asked about calls: commands of the user's hooks, then whoever answers.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use super::super::guard::Answers;
use super::super::terminal::{AtTerminal, Floor, FormsAtTerminal};
use super::super::{Io, config, style};
use crate::context::Session;
use crate::hook::Priority;
use crate::hook::external::ExternalHooks;
use crate::permission::{Approver, Ask, Reply};
use crate::pipeline::Pipeline;

/// The configured commands, to be run in `folder`; tells what among them is not understood.
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

/// Puts the configured commands in front of the calls, and of whoever is asked: that may also be
/// whoever sits behind the client of a server.
pub(super) fn with_hooks(
    mut pipeline: Pipeline,
    hooks: Option<&Arc<ExternalHooks>>,
    approver: Option<Arc<dyn Approver>>,
) -> Pipeline {
    if let Some(hooks) = hooks {
        if approver.is_some() {
            hooks.will_be_asked();
        }
        let first = Arc::clone(hooks);
        let front = move |inner| Arc::new(Arc::clone(&first).approver(inner)) as _;
        pipeline = pipeline
            .shared_hook("*", Priority::DEFAULT, Arc::clone(hooks) as _)
            .in_front_of_approvers(front);
    }
    match approver {
        Some(approver) => pipeline.shared_approver(approver),
        None => pipeline,
    }
}

/// Whoever answers when somebody has to be asked.
pub(super) fn approver(answers: Answers, floor: &Floor, io: &Io<'_>) -> Option<Arc<dyn Approver>> {
    match (answers, &io.console) {
        (Answers::Yes, _) => Some(Arc::new(Yes)),
        (Answers::Terminal, Some(console)) => {
            Some(Arc::new(AtTerminal::new(Arc::clone(console), floor.clone())))
        }
        (Answers::Terminal, None) | (Answers::Nobody, _) => None,
    }
}

/// Lets whoever sits at the terminal fill in the forms of tools.
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

/// Says yes to everything, once.
struct Yes;

impl Approver for Yes {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        ask.answered_by("--yes");
        Box::pin(std::future::ready(Some(Reply::Once)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::toy;
    use super::*;
    use crate::call::Call;
    use crate::permission::Scripted;

    // F67: whoever is asked, the hooks for permission requests stand in front of them.
    #[tokio::test]
    async fn hooks_are_asked_before_the_approver_of_a_session() {
        let registry = toy::registry();
        let called = async |line: &str, approver: Option<Arc<dyn Approver>>| {
            let config = json!({ "PermissionRequest": [
                { "hooks": [{ "type": "command", "command": line }] },
            ] });
            let (hooks, mistakes) = ExternalHooks::from_value(&config);
            assert_eq!(mistakes, []);
            let pipeline =
                with_hooks(Pipeline::new(registry.clone()), Some(&Arc::new(hooks)), approver);
            let client = Arc::new(Scripted::always(Reply::Once));
            let session = Session::new("s").with_shared_approver(Arc::clone(&client) as _);
            let outcome = pipeline.call(&session, Call::new("kinds", "{}")).await;
            (outcome.result.is_ok(), client.asked().len())
        };
        for approver in [None, Some(Arc::new(Yes) as Arc<dyn Approver>)] {
            assert_eq!(called("exit 2", approver.clone()).await, (false, 0));
            assert_eq!(called("exit 1", approver.clone()).await, (false, 0));
            assert_eq!(called("true", approver).await, (true, 1));
        }
    }
}
