//! The environment of calls: pipeline, session, workspace, hooks and approver.
//!
//! It is built from the [`ResolvedSettings`] and the resolved [`paths`].

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

/// Everything that a command needs to make calls.
pub(super) struct Stage {
    pub(super) pipeline: Pipeline,
    pub(super) session: Session,
    /// Cancels every call.
    pub(super) stop: CancellationToken,
    /// How calls that need approval are answered.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only a server needs it"))]
    pub(super) answers: Answers,
    /// The workspace for further sessions.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have sessions"))]
    pub(super) readable: Readable,
    floor: Floor,
    /// The configured hook commands.
    hooks: Option<Arc<ExternalHooks>>,
    /// The tool patterns of the settings, each with its key.
    patterns: Vec<(String, String)>,
}

impl Stage {
    /// Builds the environment. `levels` are the parsed options from left to right.
    pub(super) fn set(app: &App, levels: &[&ArgMatches], io: &mut Io<'_>) -> Result<Self> {
        let guard = Guard::load(levels, io)?;
        let mut pipeline = Pipeline::new(app.toolset(&guard)?)
            .budget(guard.budget)
            .loop_guard(LoopGuard::default())
            .redact_events(Redactor::from_env());
        let patterns = guard.patterns();
        if let Some(writable) = &guard.writable {
            for folder in writable.iter().filter(|folder| !folder.exists()) {
                let warning = format!("warning: `{}` (writable) does not exist", folder.display());
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
        // Relative paths in arguments start at the first root, so hooks run there.
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

    /// Returns the tools that the session can use.
    pub(super) fn view(&self) -> Arc<View> {
        self.pipeline.toolset().view_for(&self.session)
    }

    /// Returns the check for rules, matchers and patterns that match no tool.
    pub(super) fn spoken(&self) -> Spoken {
        let (pipeline, hooks) = (self.pipeline.clone(), self.hooks.clone());
        Spoken { pipeline, hooks, patterns: self.patterns.clone() }
    }

    /// Subscribes to events: JSON lines with `events`, progress on a terminal, else warnings only.
    pub(super) fn watch(&self, events: bool, io: &Io<'_>) -> Watch {
        match (events, io.live && !style::is_dumb(io)) {
            (true, _) => Watch::lines(self.pipeline.subscribe()),
            (false, true) => Watch::live(self.pipeline.subscribe(), self.floor.clone(), io.columns),
            (false, false) => Watch::quiet(self.pipeline.subscribe()),
        }
    }
}

/// Opens the audit log.
fn audit_log(path: &Path) -> Result<AuditLog> {
    AuditLog::open(path, Redactor::from_env()).map_err(|error| {
        Failure::config(format_args!("cannot write to `{}`: {error}", path.display()))
    })
}
