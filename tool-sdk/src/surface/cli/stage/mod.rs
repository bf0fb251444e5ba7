//! Everything that a call needs: tools behind their guard, folders, and whoever is asked.
//!
//! What options, environment and configuration say is read by [`Guard`] and [`place`]; here it
//! is put together.

mod asked;
mod folders;
mod spoken;

use std::path::Path;
use std::sync::Arc;

use clap::ArgMatches;
use tokio_util::sync::CancellationToken;

use self::folders::{Folders, Readable};
pub(super) use self::spoken::Spoken;
use super::exit::{Failure, Result};
use super::guard::{Answers, Guard};
use super::terminal::Floor;
use super::watch::Watch;
use super::{App, Io, place, style};
use crate::audit::AuditLog;
use crate::context::{Client, Session};
use crate::hook::Priority;
use crate::hook::external::ExternalHooks;
use crate::loop_guard::LoopGuard;
use crate::pipeline::Pipeline;
use crate::redact::Redactor;
use crate::toolset::View;

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
    /// What the guard says of tools by patterns.
    patterns: Vec<(String, String)>,
}

impl Stage {
    /// `levels` are the options from left to right.
    pub(super) fn set(app: &App, levels: &[&ArgMatches], io: &mut Io<'_>) -> Result<Self> {
        let guard = Guard::load(levels, io)?;
        let mut pipeline = Pipeline::new(app.toolset(&guard)?)
            .budget(guard.budget)
            .loop_guard(LoopGuard::default())
            .redact_events(Redactor::from_env());
        let patterns = guard.patterns();
        if let Some(writable) = &guard.writable {
            for folder in writable.iter().filter(|folder| !folder.exists()) {
                let warning = format!("warning: `{}` (writable) is not there", folder.display());
                io.say(style::plain(&warning));
            }
            pipeline = pipeline.writable_roots(writable);
        }
        let workspace =
            place::workspace(levels, io)?.durability(guard.durability).one_device(guard.one_device);
        let mut folders = Folders::new(workspace, guard.sandbox, levels, io);
        if let Some(outputs) = folders.outputs() {
            pipeline = pipeline.output_dir(outputs);
        }
        if let Some(store) = place::approvals(levels, io) {
            let writable = guard.writable.as_deref().unwrap_or_default();
            pipeline = pipeline.approvals(store.not_inside(writable));
        }
        if let Some(path) = &guard.audit {
            pipeline = pipeline.audit(audit_log(path)?);
            folders = folders.protect(path);
        }
        let floor = Floor::default();
        let approver = asked::approver(guard.answers, &floor, io);
        // Paths in arguments are relative to the first of the roots.
        let folder = place::roots(levels, io).into_iter().next();
        let folder = folder.unwrap_or_else(|| io.current_dir.clone());
        let hooks = asked::hooks(guard.hooks, folder, io);
        for file in hooks.iter().flat_map(|hooks| hooks.files()) {
            folders = folders.protect_when_there(&file);
        }
        if let Some(hooks) = &hooks {
            pipeline = pipeline.shared_hook("*", Priority::DEFAULT, Arc::clone(hooks));
        }
        if let Some(approver) = approver {
            pipeline = pipeline.shared_approver(approver);
        }

        let stop = CancellationToken::new();
        let (readable, sandbox) = folders.split();
        let session = place::session(levels, io).with_client(Client::Cli).lend(guard.settings);
        let session = asked::with_forms(session, guard.answers, &floor, io);
        let session = readable.lend(session).lend(sandbox);
        let session = app.equip(session).with_cancel(stop.clone());
        Ok(Self {
            pipeline,
            session,
            stop,
            answers: guard.answers,
            readable,
            floor,
            hooks,
            patterns,
        })
    }

    /// The tools as this setting has them: not those that others stand in for.
    pub(super) fn view(&self) -> Arc<View> {
        self.pipeline.toolset().view_for(&self.session)
    }

    /// What rules and hooks are compared with that may speak of nothing.
    pub(super) fn spoken(&self) -> Spoken {
        let (pipeline, hooks) = (self.pipeline.clone(), self.hooks.clone());
        Spoken { pipeline, hooks, patterns: self.patterns.clone() }
    }

    /// Whoever is told of the calls: events as lines where that is wanted, a person at a
    /// terminal, or nobody.
    pub(super) fn watch(&self, events: bool, io: &Io<'_>) -> Watch {
        match (events, io.live && !style::is_dumb(io)) {
            (true, _) => Watch::lines(self.pipeline.subscribe()),
            (false, true) => Watch::live(self.pipeline.subscribe(), self.floor.clone(), io.columns),
            (false, false) => Watch::quiet(self.pipeline.subscribe()),
        }
    }
}

/// The file in which decisions and runs are written down.
fn audit_log(path: &Path) -> Result<AuditLog> {
    AuditLog::open(path, Redactor::from_env()).map_err(|error| {
        Failure::config(format_args!("cannot write to `{}`: {error}", path.display()))
    })
}
