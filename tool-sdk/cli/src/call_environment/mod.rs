//! The environment of calls: pipeline, session, workspace, hooks and approver.
//!
//! It is built from the [`ResolvedSettings`] and the resolved [`paths`].

mod approver;
mod protected_workspace;
mod unmatched_patterns;

use std::path::Path;
use std::sync::Arc;

use clap::ArgMatches;
use tokio_util::sync::CancellationToken;

use self::protected_workspace::{ProtectedWorkspace, SessionWorkspace};
pub(super) use self::unmatched_patterns::UnmatchedPatterns;
use super::event_printer::EventPrinter;
use super::exit::{CommandError, Result};
use super::settings::{PromptMode, ResolvedSettings};
use super::terminal::TerminalLock;
use super::{App, Io, paths, style};
use tool_sdk_core::AuditLog;
use tool_sdk_core::HookPriority;
use tool_sdk_core::LoopGuard;
use tool_sdk_core::Pipeline;
use tool_sdk_core::Redactor;
use tool_sdk_core::ToolsetView;
use tool_sdk_core::{ClientKind, Session};
use tool_sdk_hooks::ExternalHooks;

/// Everything that a command needs to make calls.
pub(super) struct CallEnvironment {
    pub(super) pipeline: Pipeline,
    pub(super) session: Session,
    /// Cancels every call.
    pub(super) cancel_token: CancellationToken,
    /// How calls that need approval are answered.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only a server needs it"))]
    pub(super) prompt_mode: PromptMode,
    /// The workspace for further sessions.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have sessions"))]
    pub(super) session_workspace: SessionWorkspace,
    terminal_lock: TerminalLock,
    /// The configured hook commands.
    hooks: Option<Arc<ExternalHooks>>,
    /// The tool patterns of the settings, each with its key.
    patterns: Vec<(String, String)>,
}

impl CallEnvironment {
    /// Builds the environment. `levels` are the parsed options from left to right.
    pub(super) fn build(app: &App, levels: &[&ArgMatches], io: &mut Io<'_>) -> Result<Self> {
        let settings = ResolvedSettings::load(levels, io)?;
        let mut pipeline = Pipeline::new(app.build_toolset(&settings)?)
            .budget(settings.budget)
            .loop_guard(LoopGuard::default())
            .redact_events(Redactor::from_env());
        let patterns = settings.tool_patterns();
        if let Some(writable) = &settings.writable {
            for folder in writable.iter().filter(|folder| !folder.exists()) {
                let warning = format!("warning: `{}` (writable) does not exist", folder.display());
                io.print_stderr(style::sanitize_text(&warning));
            }
            pipeline = pipeline.writable_roots(writable);
        }
        let workspace = paths::open_workspace(levels, io)?
            .durability(settings.durability)
            .same_file_system(settings.one_device);
        let mut folders = ProtectedWorkspace::new(workspace, settings.sandbox, levels, io);
        if let Some(outputs) = folders.output_dir() {
            pipeline = pipeline.output_dir(outputs);
        }
        if let Some(store) = paths::open_approvals(levels, io) {
            let writable = settings.writable.as_deref().unwrap_or_default();
            pipeline = pipeline.grant_store(store.with_writable_roots(writable));
        }
        if let Some(path) = &settings.audit {
            pipeline = pipeline.audit(open_audit_log(path)?);
            folders = folders.protect(path);
        }
        let lock = TerminalLock::default();
        let approver = approver::build_approver(settings.prompt_mode, &lock, io);
        // Relative paths in arguments start at the first root, so hooks run there.
        let folder = paths::workspace_roots(levels, io).into_iter().next();
        let folder = folder.unwrap_or_else(|| io.current_dir.clone());
        let hooks = approver::build_hooks(settings.hooks, folder, io);
        for file in hooks.iter().flat_map(|hooks| hooks.command_files()) {
            folders = folders.protect_if_present(&file);
        }
        if let Some(hooks) = &hooks {
            pipeline = pipeline.shared_hook("*", HookPriority::DEFAULT, Arc::clone(hooks));
        }
        if let Some(approver) = approver {
            pipeline = pipeline.shared_approver(approver);
        }

        let stop = CancellationToken::new();
        let (readable, sandbox) = folders.into_parts();
        let session = paths::new_session(levels, io)
            .with_client(ClientKind::Cli)
            .with_service(settings.session_settings);
        let session = approver::with_terminal_forms(session, settings.prompt_mode, &lock, io);
        let session = readable.attach_to(session).with_service(sandbox);
        let session = app.prepare_session(session).with_cancel(stop.clone());
        Ok(Self {
            pipeline,
            session,
            cancel_token: stop,
            prompt_mode: settings.prompt_mode,
            session_workspace: readable,
            terminal_lock: lock,
            hooks,
            patterns,
        })
    }

    /// Returns the tools that the session can use.
    pub(super) fn toolset_view(&self) -> Arc<ToolsetView> {
        self.pipeline.toolset().view_for(&self.session)
    }

    /// Returns the check for rules, matchers and patterns that match no tool.
    pub(super) fn unmatched_patterns(&self) -> UnmatchedPatterns {
        let (pipeline, hooks) = (self.pipeline.clone(), self.hooks.clone());
        UnmatchedPatterns { pipeline, hooks, patterns: self.patterns.clone() }
    }

    /// Subscribes to events: JSON lines with `events`, progress on a terminal, else warnings only.
    pub(super) fn event_printer(&self, events: bool, io: &Io<'_>) -> EventPrinter {
        match (events, io.stderr_is_terminal && !style::is_dumb_terminal(io)) {
            (true, _) => EventPrinter::json_lines(self.pipeline.subscribe()),
            (false, true) => EventPrinter::progress_line(
                self.pipeline.subscribe(),
                self.terminal_lock.clone(),
                io.columns,
            ),
            (false, false) => EventPrinter::warnings_only(self.pipeline.subscribe()),
        }
    }
}

/// Opens the audit log.
fn open_audit_log(path: &Path) -> Result<AuditLog> {
    AuditLog::open(path, Redactor::from_env()).map_err(|error| {
        CommandError::config(format_args!("cannot write to `{}`: {error}", path.display()))
    })
}
