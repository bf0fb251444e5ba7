//! Everything that a call needs: tools behind their guard, folders, and whoever is asked.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use clap::ArgMatches;
use tokio_util::sync::CancellationToken;

use super::exit::{Failure, Result};
use super::guard::{Answers, Guard};
use super::terminal::{AtTerminal, Floor, FormsAtTerminal};
use super::watch::Watch;
use super::{App, Io, config, place, style};
use crate::audit::AuditLog;
use crate::context::{Client, Session};
use crate::hook::Priority;
use crate::hook::external::ExternalHooks;
use crate::loop_guard::LoopGuard;
use crate::permission::{Approver, Ask, Mode, Reply, Rule};
use crate::pipeline::Pipeline;
use crate::redact::Redactor;
use crate::truncate::prepare_outputs;
use crate::workspace::Workspace;

/// Where calls are made.
pub(super) struct Stage {
    pub(super) pipeline: Pipeline,
    pub(super) session: Session,
    /// Ends every call.
    pub(super) stop: CancellationToken,
    /// Who was meant to answer what is asked.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers ask others"))]
    pub(super) answers: Answers,
    /// The folders as each session sees them.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have sessions"))]
    pub(super) readable: Readable,
    floor: Floor,
}

/// The folders that tools may touch, and where calls keep what was too long to show.
pub(super) struct Readable {
    workspace: Workspace,
    outputs: Option<PathBuf>,
}

impl Readable {
    /// Lends the folders; what an earlier call of the session kept may be read without asking.
    pub(super) fn lend(&self, session: Session) -> Session {
        let workspace = self.workspace.clone();
        let kept = self.outputs.as_deref().and_then(|dir| prepare_outputs(dir, session.id()).ok());
        match kept.and_then(|dir| workspace.clone().readable(dir).ok()) {
            Some(readable) => session.lend(readable),
            None => session.lend(workspace),
        }
    }
}

impl Stage {
    /// `levels` are the options from left to right.
    pub(super) fn set(app: &App, levels: &[&ArgMatches], io: &mut Io<'_>) -> Result<Self> {
        let guard = Guard::load(levels, io)?;
        let mut pipeline = Pipeline::new(app.toolset(&guard))
            .budget(guard.budget)
            .loop_guard(LoopGuard::default());
        let mut workspace = place::workspace(levels, io)?.durability(guard.durability);
        let mut outputs = None;
        let mut sandbox = guard.sandbox;
        // What is configured, approved and written down is not for commands to write, and no
        // matter of course for tools.
        if let Some(path) = config::path(levels, io) {
            workspace = workspace.protect(&path);
            if path.exists() {
                sandbox = sandbox.protect(path);
            }
        }
        if let Some(dir) = place::state_dir(levels, io) {
            outputs = Some(dir.join("outputs"));
            pipeline = pipeline.output_dir(dir.join("outputs"));
            workspace = workspace.protect(&dir);
            sandbox = sandbox.protect(dir);
            if let Some(store) = place::approvals(levels, io) {
                pipeline = pipeline.approvals(store);
            }
        }
        if let Some(path) = &guard.audit {
            let log = AuditLog::open(path, Redactor::from_env()).map_err(|error| {
                Failure::config(format_args!("cannot write to `{}`: {error}", path.display()))
            })?;
            pipeline = pipeline.audit(log);
            workspace = workspace.protect(path);
            sandbox = sandbox.protect(path);
        }
        let readable = Readable { workspace, outputs };
        let floor = Floor::default();
        let approver: Option<Arc<dyn Approver>> = match (guard.answers, &io.console) {
            (Answers::Yes, _) => Some(Arc::new(Yes)),
            (Answers::Terminal, Some(console)) => {
                Some(Arc::new(AtTerminal::new(Arc::clone(console), floor.clone())))
            }
            (Answers::Terminal, None) | (Answers::Nobody, _) => None,
        };
        pipeline = hooked(pipeline, guard.hooks, approver, guard.mode, io);

        let stop = CancellationToken::new();
        let mut session = Session::new(SESSION).with_client(Client::Cli).lend(guard.settings);
        if let (Answers::Terminal, Some(console)) = (guard.answers, &io.console) {
            let forms = FormsAtTerminal::new(Arc::clone(console), floor.clone());
            session = session.with_inquiries(Arc::new(forms));
        }
        let session = readable.lend(session).lend(sandbox);
        let session = app.equip(session).with_cancel(stop.clone());
        Ok(Self { pipeline, session, stop, answers: guard.answers, readable, floor })
    }

    /// Tells of rules that speak of nothing that there is, nor of anything that `may_come`.
    /// They stay: a tool may come later.
    pub(super) fn warn_of_unmatched(&self, may_come: impl Fn(&Rule) -> bool, io: &mut Io<'_>) {
        let view = self.pipeline.toolset().view();
        for rule in view.unmatched_rules().iter().filter(|rule| !may_come(rule)) {
            let origin = match rule.origin.as_str() {
                "" => String::new(),
                origin => format!(" ({origin})"),
            };
            let warning =
                format!("warning: the rule `{rule}`{origin} speaks of no tool that there is");
            io.say(style::plain(&warning));
        }
    }

    /// Whoever is told of the calls: events as lines where that is wanted, a person at a
    /// terminal, or nobody.
    pub(super) fn watch(&self, events: bool, io: &Io<'_>) -> Watch {
        match (events, io.live && !style::is_dumb(io)) {
            (true, _) => Watch::lines(self.pipeline.subscribe()),
            (false, true) => Watch::live(self.pipeline.subscribe(), self.floor.clone()),
            (false, false) => Watch::nobody(),
        }
    }
}

/// The session of every command line: what one keeps, the next may read.
const SESSION: &str = "cli";

/// Puts the configured commands in front of the calls, and of whoever is asked.
fn hooked(
    mut pipeline: Pipeline,
    hooks: Option<ExternalHooks>,
    approver: Option<Arc<dyn Approver>>,
    mode: Mode,
    io: &Io<'_>,
) -> Pipeline {
    let hooks = hooks
        .filter(|hooks| !hooks.is_empty())
        .map(|hooks| Arc::new(hooks.in_folder(io.current_dir.clone()).in_mode(mode)));
    let approver = match (&hooks, approver) {
        (Some(hooks), Some(inner)) => Some(Arc::new(Arc::clone(hooks).approver(inner)) as _),
        (_, approver) => approver,
    };
    if let Some(hooks) = hooks {
        pipeline = pipeline.shared_hook("*", Priority::DEFAULT, hooks);
    }
    match approver {
        Some(approver) => pipeline.shared_approver(approver),
        None => pipeline,
    }
}

/// Says yes to everything, once.
struct Yes;

impl Approver for Yes {
    fn ask(&self, _: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        Box::pin(std::future::ready(Some(Reply::Once)))
    }
}
