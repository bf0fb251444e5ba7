//! Everything that a call needs: tools behind their guard, folders, and whoever is asked.

use std::path::{Path, PathBuf};
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
use crate::permission::{Action, Approver, Ask, Reply, Rule};
use crate::pipeline::Pipeline;
use crate::redact::Redactor;
use crate::toolset::View;
use crate::truncate::{RETENTION, is_due, prepare_outputs, sweep};
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
    /// The commands that look at calls.
    hooks: Option<Arc<ExternalHooks>>,
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
        let mut pipeline = Pipeline::new(app.toolset(&guard)?)
            .budget(guard.budget)
            .loop_guard(LoopGuard::default())
            .redact_events(Redactor::from_env());
        if let Some(folders) = guard.writable {
            pipeline = pipeline.writable_roots(folders);
        }
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
            let kept = dir.join("outputs");
            sweep_now_and_then(&kept);
            pipeline = pipeline.output_dir(kept.clone());
            outputs = Some(kept);
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
        // Paths in arguments are relative to the first of the roots.
        let folder = place::roots(levels, io).into_iter().next();
        let folder = folder.unwrap_or_else(|| io.current_dir.clone());
        for remark in guard.hooks.iter().flat_map(|hooks| &hooks.remarks) {
            io.say(style::plain(&format!("warning: hooks.{remark}")));
        }
        let hooks = guard
            .hooks
            .map(|hooks| hooks.commands)
            .filter(|hooks| !hooks.is_empty())
            .map(|hooks| Arc::new(hooks.in_folder(folder).in_mode(guard.mode)));
        for file in hooks.iter().flat_map(|hooks| hooks.files()) {
            workspace = workspace.protect(&file);
            if file.exists() {
                sandbox = sandbox.protect(file);
            }
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
        pipeline = hooked(pipeline, hooks.as_ref(), approver);

        let stop = CancellationToken::new();
        let mut session = Session::new(SESSION).with_client(Client::Cli).lend(guard.settings);
        if let (Answers::Terminal, Some(console)) = (guard.answers, &io.console) {
            let forms = FormsAtTerminal::new(Arc::clone(console), floor.clone());
            session = session.with_inquiries(Arc::new(forms));
        }
        let session = readable.lend(session).lend(sandbox);
        let session = app.equip(session).with_cancel(stop.clone());
        Ok(Self { pipeline, session, stop, answers: guard.answers, readable, floor, hooks })
    }

    /// The tools as this setting has them: not those that others stand in for.
    pub(super) fn view(&self) -> Arc<View> {
        self.pipeline.toolset().view_for(&self.session)
    }

    /// What rules and hooks are compared with that may speak of nothing.
    pub(super) fn spoken(&self) -> Spoken {
        Spoken { pipeline: self.pipeline.clone(), hooks: self.hooks.clone() }
    }

    /// Whoever is told of the calls: events as lines where that is wanted, a person at a
    /// terminal, or nobody.
    pub(super) fn watch(&self, events: bool, io: &Io<'_>) -> Watch {
        match (events, io.live && !style::is_dumb(io)) {
            (true, _) => Watch::lines(self.pipeline.subscribe()),
            (false, true) => Watch::live(self.pipeline.subscribe(), self.floor.clone()),
            (false, false) => Watch::quiet(self.pipeline.subscribe()),
        }
    }
}

/// What rules and hooks may speak of, also once the calls are made by somebody else.
pub(super) struct Spoken {
    pipeline: Pipeline,
    hooks: Option<Arc<ExternalHooks>>,
}

impl Spoken {
    /// Tells of rules and hooks that speak of nothing that there is, nor of anything that
    /// `may_come`.
    /// They stay: a tool may come later.
    pub(super) fn warn(&self, may_come: impl Fn(&Rule) -> bool, io: &mut Io<'_>) {
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
        let tools = self.pipeline.toolset().everything();
        let definitions = || tools.iter().map(|tool| tool.definition());
        for (place, name) in self.hooks.iter().flat_map(|hooks| hooks.unmatched(definitions())) {
            // An expression may mean whatever a server brings.
            let permission = if name.contains(|c| !is_of_name(c)) { "*" } else { name };
            if !may_come(&Rule::new(Action::Deny, permission, "*")) {
                let warning = format!(
                    "warning: the matcher `{name}` (hooks.{place}) speaks of no tool that there is"
                );
                io.say(style::plain(&warning));
            }
        }
    }
}

/// Removes outputs that nobody came back for, at most once an hour. Nobody waits for it; whoever
/// ends before finds them next time.
fn sweep_now_and_then(folder: &Path) {
    if is_due(folder) {
        let folder = folder.to_owned();
        drop(std::thread::spawn(move || sweep(&folder, RETENTION)));
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// The session of every command line: what one keeps, the next may read.
const SESSION: &str = "cli";

/// Puts the configured commands in front of the calls, and of whoever is asked.
fn hooked(
    mut pipeline: Pipeline,
    hooks: Option<&Arc<ExternalHooks>>,
    approver: Option<Arc<dyn Approver>>,
) -> Pipeline {
    let approver = match (hooks, approver) {
        (Some(hooks), Some(inner)) => Some(Arc::new(Arc::clone(hooks).approver(inner)) as _),
        (_, approver) => approver,
    };
    if let Some(hooks) = hooks {
        pipeline = pipeline.shared_hook("*", Priority::DEFAULT, Arc::clone(hooks) as _);
    }
    match approver {
        Some(approver) => pipeline.shared_approver(approver),
        None => pipeline,
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
