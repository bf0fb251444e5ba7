//! The environment of calls: pipeline, session, workspace, hooks and approver.
//!
//! It is built from the [`Settings`].

mod approver;
mod protected_workspace;
mod unmatched_patterns;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tool_sdk_core::{
    AuditLog, Call, ClientKind, HookPriority, Ledger, LoopGuard, Outcome, Pipeline, Redactor,
    Session, ToolSettings, Toolset, ToolsetView,
};
use tool_sdk_hooks::ExternalHooks;

use self::protected_workspace::{ProtectedWorkspace, SessionWorkspace};
pub(super) use self::unmatched_patterns::UnmatchedPatterns;
use super::event_printer::EventPrinter;
use super::exit::{CommandError, Result};
use super::settings::{CallLimits, Settings};
use super::terminal::TerminalLock;
use super::{App, Io, run_loop, state_store, style};

/// Everything that a command needs to make calls.
pub(super) struct CallEnvironment {
    pub(super) pipeline: Pipeline,
    pub(super) session: Session,
    /// Cancels every call.
    pub(super) cancel_token: CancellationToken,
    /// The workspace for further sessions.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers have sessions"))]
    pub(super) session_workspace: SessionWorkspace,
    terminal_lock: TerminalLock,
    /// The configured hook commands.
    hooks: Option<Arc<ExternalHooks>>,
    /// The tool patterns of the settings, each with its key.
    patterns: Vec<(String, String)>,
}

/// A call that has ended.
pub(super) struct FinishedCall {
    pub(super) outcome: Outcome,
    /// Whether the session is in plan mode, which a tool entered.
    pub(super) is_in_plan_mode: bool,
    /// The output that was shown on the terminal while the tool ran.
    pub(super) live_output: String,
}

impl CallEnvironment {
    /// Builds the environment. `tools` are those of the program, as the settings configure them.
    pub(super) fn build(
        app: &App,
        settings: &Settings,
        tools: Toolset,
        io: &mut Io<'_>,
    ) -> Result<Self> {
        Self::build_for_model(app, settings, tools, settings.model.as_deref(), io)
    }

    /// Builds the environment for calls of this model.
    pub(super) fn build_for_model(
        app: &App,
        settings: &Settings,
        tools: Toolset,
        model: Option<&str>,
        io: &mut Io<'_>,
    ) -> Result<Self> {
        // For the calls whose sessions name no model.
        let tools = match model {
            Some(model) => tools.for_session(&Session::new("cli").with_model(model)),
            None => tools,
        };
        let secrets = settings.secret_store();
        let redactor = secrets.redactor().clone();
        if io.log_setup.is_some() {
            mask_panics(redactor.clone());
        }
        let pipeline = app.prepare_pipeline(Pipeline::new(tools)).redact_events(redactor.clone());
        let mut pipeline = with_limits(pipeline, &settings.limits);
        let writable = settings.writable.as_deref();
        if let Some(writable) = writable {
            warn_missing_folders(writable, io);
            pipeline = pipeline.writable_roots(writable);
        }
        let mut folders = ProtectedWorkspace::new(settings);
        if let Some(outputs) = folders.output_dir() {
            pipeline = pipeline.output_dir(outputs);
        }
        if let Some(store) = settings.open_approvals() {
            pipeline =
                pipeline.grant_store(store.with_writable_roots(writable.unwrap_or_default()));
        }
        if let Some(path) = &settings.audit {
            pipeline = pipeline.audit(open_audit_log(path, redactor.clone())?);
            folders = folders.protect(path);
        }
        let lock = TerminalLock::default();
        let approver = approver::build_approver(settings.prompt_mode, &lock, io);
        let hooks = approver::build_hooks(settings.hooks.as_ref(), io);
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
        let session = new_session(settings, io)?.with_service(secrets);
        let session = approver::with_terminal_forms(session, settings.prompt_mode, &lock, io);
        let session = readable.attach_to(session).with_service(sandbox);
        let session = with_caller(session, settings, model, pipeline.toolset())?;
        let session = app.prepare_session(session).with_cancel(stop.clone());
        let pipeline = state_store::record_sessions(pipeline, settings, redactor)?;
        let session = session.with_service(pipeline.plugins());
        app.warn_of_plugins(io);
        Ok(Self {
            pipeline,
            session,
            cancel_token: stop,
            session_workspace: readable,
            terminal_lock: lock,
            hooks,
            patterns: settings.tool_patterns(),
        })
    }

    /// Makes the one call of the program, and prints its events.
    pub(super) fn call(
        self,
        call: Call<'static>,
        events: bool,
        io: &mut Io<'_>,
    ) -> Result<FinishedCall> {
        let printer = self.event_printer(events, io);
        let session = self.ending_session();
        let Self { pipeline, cancel_token, .. } = self;
        let after = pipeline.clone();
        let caller = session.clone();
        let work = async move { pipeline.call(&caller, call).await };
        let (outcome, live_output) =
            run_loop::run_calls(work, after.finish(), &cancel_token, printer, io.stderr)?;
        let is_in_plan_mode = session.plan_draft().is_some();
        Ok(FinishedCall { outcome, is_in_plan_mode, live_output })
    }

    /// Returns the session for calls after which the program ends: no process outlives its call.
    pub(super) fn ending_session(&self) -> Session {
        let mut settings = ToolSettings::from_session(&self.session);
        settings.background_processes = false;
        self.session.clone().with_service(settings)
    }

    /// Returns the tools that the session can use.
    pub(super) fn toolset_view(&self) -> Arc<ToolsetView> {
        self.pipeline.toolset().view_for(&self.session)
    }

    /// Returns the lock on the terminal.
    #[cfg_attr(not(feature = "agent"), expect(dead_code, reason = "only the chat reads keys"))]
    pub(super) fn terminal_lock(&self) -> TerminalLock {
        self.terminal_lock.clone()
    }

    /// Warns about services that tools need and the program has not provided.
    pub(super) fn warn_missing_services(&self, io: &mut Io<'_>) {
        for missing in self.pipeline.check_setup(&self.session) {
            io.print_stderr(style::sanitize_text(&format!("warning: {missing}")));
        }
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
                style::TextStyle::for_stderr(io),
            ),
            (false, false) => EventPrinter::warnings_only(self.pipeline.subscribe()),
        }
    }
}

/// Sets the model and the agent of the settings. Fails for an unknown agent, which could call every
/// tool.
fn with_caller(
    mut session: Session,
    settings: &Settings,
    model: Option<&str>,
    tools: &Toolset,
) -> Result<Session> {
    if let Some(model) = model {
        session = session.with_model(model);
    }
    let Some(agent) = &settings.agent else { return Ok(session) };
    if !tools.has_agent(agent) {
        let known: Vec<String> = tools.agent_views().into_iter().filter_map(|it| it.0).collect();
        let hint = match &*known {
            [] => "there is none; `[agents.NAME]` in the configuration adds one".to_owned(),
            known => format!("the agents are {}", known.join(", ")),
        };
        let agent = agent.escape_debug();
        return Err(CommandError::usage(format_args!("there is no agent `{agent}`")).hint(hint));
    }
    Ok(session.with_agent(agent.clone()))
}

/// Masks secrets in the message of a panic, which the process prints on standard error.
fn mask_panics(redactor: Redactor) {
    std::panic::set_hook(Box::new(move |panic| {
        let trace = std::backtrace::Backtrace::capture();
        let message = format!("{panic}\n{trace}");
        let _ = writeln!(std::io::stderr(), "{}", redactor.redact(message.trim_end()));
    }));
}

/// Applies the limits of the settings to a pipeline.
fn with_limits(pipeline: Pipeline, limits: &CallLimits) -> Pipeline {
    let mut pipeline = pipeline
        .budget(limits.budget)
        .outputs_max_age(limits.outputs_max_age)
        .loop_guard(LoopGuard::new(limits.loop_guard.clone()));
    if let Some(timeout) = limits.call_timeout {
        pipeline = pipeline.timeout(timeout);
    }
    if let Some(timeout) = limits.approval_timeout {
        pipeline = pipeline.approval_timeout(timeout);
    }
    pipeline
}

fn warn_missing_folders(writable: &[PathBuf], io: &mut Io<'_>) {
    for folder in writable.iter().filter(|folder| !folder.exists()) {
        let warning = format!("warning: `{}` (writable) does not exist", folder.display());
        io.print_stderr(style::sanitize_text(&warning));
    }
}

/// Returns a session with what the settings and the state folder provide for it.
fn new_session(settings: &Settings, io: &Io<'_>) -> Result<Session> {
    let session = settings
        .new_session()
        .with_client(ClientKind::Cli)
        .with_service(settings.session_settings)
        .with_service(settings.program_folders(io));
    #[cfg(feature = "net")]
    let session = session.with_service(tool_sdk_net::GuardedClient::new(settings.web.clone()));
    let session = with_ledger(session, settings)?;
    Ok(state_store::attach_stores(session, settings))
}

/// Attaches the ledger of the project, where there is a state folder.
fn with_ledger(session: Session, settings: &Settings) -> Result<Session> {
    let Some(path) = settings.ledger_path() else { return Ok(session) };
    let ledger = Ledger::open(&path)
        .map_err(|error| CommandError::config(format_args!("the ledger: {error}")))?;
    Ok(session.with_service(ledger))
}

/// Opens the audit log.
fn open_audit_log(path: &Path, redactor: Redactor) -> Result<AuditLog> {
    AuditLog::open(path, redactor).map_err(|error| {
        CommandError::config(format_args!("cannot write to `{}`: {error}", path.display()))
    })
}
