//! External hooks: commands that read a call as JSON on standard input and print a decision.
//!
//! Configuration and protocol are those of Claude Code, so commands written for it work here. All
//! commands of one event run concurrently on the same input; their outputs are combined in the
//! order of the configuration.
//!
//! **Invariant:** a command that fails, times out or cannot be started decides nothing; unless its
//! entry has `on_error = "ignore"`, the call that it should have decided about is denied.

#![forbid(unsafe_code)]

mod after_call;
mod approver;
mod combine;
mod command_files;
mod config;
mod event;
mod matcher;
mod payload;
mod protocol;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::task::TaskTracker;
use tool_sdk_core::{
    Approver, CancellationToken, Definition, Hook, HookContext, HookDecision, HookRun, Mode,
    Output, Session, ToolError,
    internal::{ExternalArgNames, HookVerdict},
};
use tool_sdk_process::ChildEnv;

use self::approver::ExternalHookApprover;
pub use self::config::HookConfigError;
use self::config::HookEntry;
use self::event::HookEvent;
use self::payload::{HookPayload, permission_mode_name};
use self::protocol::{HookFailure, HookOutput};

/// The limit of a command's captured output in bytes.
const MAX_OUTPUT: usize = 64 << 10;

/// Hooks that run external commands, read from a configuration.
///
/// The exit code of a command decides how its output is read:
///
/// | exit | means |
/// |---|---|
/// | 0, plain text or nothing | no decision |
/// | 0, one JSON object | the decision in the object |
/// | 0, an invalid object | the hook failed |
/// | 2, with any output | denied; standard error is the reason |
/// | another code, a signal, a timeout, not started | the hook failed |
///
/// Besides the common keys an entry may have two more. `on_error` is `deny` or `ignore`: by
/// default, a hook that fails before a call or for a permission request denies it, and one that
/// fails after a call is ignored. With `deny`, the result of a call is withheld when such a hook
/// fails, and so are the changes of other hooks to it. `may_allow` says whether an `allow` of the
/// hook counts; it never overrides a denial.
///
/// The default timeout is 10 seconds before a call and for a permission request, and 60 seconds
/// after a call; `timeout` overrides it. A command that is `async` decides nothing and no call waits
/// for it; [`Pipeline::finish`](tool_sdk_core::Pipeline::finish) does.
///
/// # Examples
///
/// ```
/// use tool_sdk::ExternalHooks;
///
/// let (hooks, errors) = ExternalHooks::from_json(r#"{
///     "PreToolUse": [
///         { "matcher": "write_note|delete_note", "hooks": [
///             { "type": "command", "command": "./guard.sh", "timeout": 5 }
///         ] }
///     ],
///     "PreToolUsed": []
/// }"#);
///
/// assert!(!hooks.is_empty());
/// assert_eq!(errors[0].path, "PreToolUsed");
/// ```
#[derive(Clone, Debug)]
pub struct ExternalHooks {
    entries: Vec<HookEntry>,
    working_dir: Option<PathBuf>,
    env: ChildEnv,
    /// Ends running commands.
    stop: CancellationToken,
    /// The running `async` commands.
    background: TaskTracker,
    /// Whether the warning about permission request hooks without an approver was emitted.
    warned_of_requests: Arc<AtomicBool>,
}

impl ExternalHooks {
    /// Parses a configuration, and returns the errors in it. Valid entries are used despite errors
    /// in others.
    ///
    /// It is an object of events, or a settings file that has one under `hooks`.
    #[must_use]
    pub fn from_json(config: &str) -> (Self, Vec<HookConfigError>) {
        match serde_json::from_str(config) {
            Ok(config) => Self::from_value(&config),
            Err(error) => {
                let message = format!("expected JSON: {error}");
                let error = HookConfigError { path: "hooks".to_owned(), message, fatal: true };
                (Self::from_entries(Vec::new()), vec![error])
            }
        }
    }

    /// Reads a configuration that was parsed from another format.
    #[must_use]
    pub fn from_value(config: &Value) -> (Self, Vec<HookConfigError>) {
        let (entries, errors) = config::parse_config(config);
        (Self::from_entries(entries), errors)
    }

    fn from_entries(entries: Vec<HookEntry>) -> Self {
        Self {
            entries,
            working_dir: None,
            env: ChildEnv::from_host(),
            stop: CancellationToken::new(),
            background: TaskTracker::new(),
            warned_of_requests: Arc::default(),
        }
    }

    /// Sets the working directory of commands, which is also in their input; by default that of the
    /// host.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(folder.into());
        self
    }

    /// Sets the environment of commands; [`ChildEnv::from_host`] by default.
    #[must_use]
    pub fn with_env(mut self, env: ChildEnv) -> Self {
        self.env = env;
        self
    }

    /// Ends running commands when `stop` is triggered, also those that no call waits for, and starts no
    /// others. A command that is ended has failed.
    #[must_use]
    pub fn stopped_by(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Whether there are no commands.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the files that the commands name. A change to one of them changes the decisions of
    /// the hooks, so hosts protect them with `Workspace::protect`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::ExternalHooks;
    ///
    /// let (hooks, _) = ExternalHooks::from_json(r#"{
    ///     "PreToolUse": [{ "hooks": [{ "type": "command", "command": "./guard.sh" }] }]
    /// }"#);
    /// let hooks = hooks.in_folder("/project");
    /// assert!(hooks.command_files()[0].ends_with("guard.sh"));
    /// ```
    #[must_use]
    pub fn command_files(&self) -> Vec<PathBuf> {
        let folder = self.working_dir();
        self.entries
            .iter()
            .flat_map(|entry| command_files::command_files(&entry.command, &folder))
            .collect()
    }

    /// Warns once of permission request hooks when the host has no approver.
    fn warn_unreachable_requests(&self, call: &HookContext<'_>) {
        let of_requests = |entry: &&HookEntry| entry.event == HookEvent::PermissionRequest;
        let Some(first) = self.entries.iter().find(of_requests) else { return };
        if !call.has_approver() && !self.warned_of_requests.swap(true, Ordering::Relaxed) {
            call.emit_warning(format!(
                "the hook {} never runs: there is no approver, so there are no permission requests",
                first.name()
            ));
        }
    }

    /// Returns the names in matchers that match none of `tools`, each with the key of its hook.
    #[doc(hidden)]
    pub fn unmatched_matchers<'a>(
        &'a self,
        tools: impl Iterator<Item = &'a Definition>,
    ) -> Vec<(&'a str, &'a str)> {
        let tools: Vec<Vec<&str>> = tools.map(|tool| tool.names().collect()).collect();
        let of_entry = |entry: &'a HookEntry| {
            entry.matcher.unmatched_names(&tools).into_iter().map(|name| (&*entry.place, name))
        };
        self.entries.iter().flat_map(of_entry).collect()
    }

    /// Returns the hooks of `event` that match a tool with these names, each with the name that
    /// its matcher uses for the tool.
    fn matching_entries(
        &self,
        event: HookEvent,
        names: impl FnOnce() -> Vec<String>,
    ) -> Vec<(&HookEntry, String)> {
        let mut of_event = self.entries.iter().filter(|entry| entry.event == event).peekable();
        // Computes the names only if there is a hook for the event.
        if of_event.peek().is_none() {
            return Vec::new();
        }
        let names = names();
        let called = |entry: &'_ HookEntry| {
            entry.matcher.matched_name(names.iter().map(String::as_str)).map(str::to_owned)
        };
        of_event.filter_map(|entry| Some((entry, called(entry)?))).collect()
    }

    /// Returns the part of the input that is the same for every call of a session.
    fn session_payload<'a>(
        &self,
        event: HookEvent,
        session: &'a Session,
        mode: Mode,
    ) -> HookPayload<'a> {
        HookPayload {
            session_id: session.id(),
            cwd: self.working_dir().to_string_lossy().into_owned(),
            permission_mode: permission_mode_name(mode),
            hook_event_name: event.as_str(),
            agent: session.agent(),
            depth: session.metadata().get("depth").and_then(Value::as_u64),
            ..HookPayload::default()
        }
    }

    fn call_payload<'a>(
        &self,
        event: HookEvent,
        call: &HookContext<'a>,
        input: &'a Value,
    ) -> HookPayload<'a> {
        HookPayload {
            tool_input: Some(input),
            tool_use_id: call.id().to_string(),
            duration_ms: call.elapsed().map(to_millis),
            ..self.session_payload(event, call.session(), call.mode())
        }
    }

    fn working_dir(&self) -> Cow<'_, Path> {
        match &self.working_dir {
            Some(folder) => Cow::Borrowed(folder),
            None => Cow::Owned(std::env::current_dir().unwrap_or_default()),
        }
    }

    /// Runs `entries` concurrently, and returns their outputs in the order of the entries.
    async fn run_entries<'e>(
        &self,
        entries: Vec<(&'e HookEntry, String)>,
        payload: &HookPayload<'_>,
        watch: &(dyn Fn(HookRun) + Sync),
    ) -> Vec<(&'e HookEntry, Result<HookOutput, HookFailure>)> {
        let runs = entries.into_iter().map(async |(entry, tool_name)| {
            let started = Instant::now();
            let answer =
                match serde_json::to_vec(&HookPayload { tool_name: &tool_name, ..payload.clone() })
                {
                    Ok(input) => self.run_entry(entry, &input).await,
                    Err(error) => Err(HookFailure {
                        message: "the call could not be serialized for its hooks".to_owned(),
                        detail: error.to_string(),
                    }),
                };
            watch(HookRun {
                hook: entry.name(),
                outcome: describe_outcome(entry, &answer, payload.tool_input),
                elapsed_ms: to_millis(started.elapsed()),
            });
            (entry, answer)
        });
        join_all(runs).await
    }

    async fn run_entry(&self, entry: &HookEntry, input: &[u8]) -> Result<HookOutput, HookFailure> {
        let run = entry
            .command
            .to_run()
            .current_dir(self.working_dir())
            .env(self.env.clone().with_var("CLAUDE_PROJECT_DIR", self.working_dir().as_os_str()))
            .stdin(input)
            .timeout(entry.timeout)
            .output_limit(MAX_OUTPUT);
        let stop = self.stop.clone();
        let running =
            async move { stop.run_until_cancelled_owned(tool_sdk_process::run(run)).await };
        if entry.background {
            self.background.spawn(running);
            return Ok(HookOutput::default());
        }
        let Some(ended) = running.await else {
            return Err(HookFailure {
                message: format!("`{}` was ended with its plugin", entry.command.program_label()),
                detail: String::new(),
            });
        };
        protocol::interpret_exit(
            entry.event,
            entry.command.program_label(),
            entry.timeout,
            ended.as_ref(),
        )
    }
}

impl Hook for ExternalHooks {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("external")
    }

    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        self.warn_unreachable_requests(call);
        let entries = self.matching_entries(HookEvent::PreToolUse, || call.forbidden_names());
        if entries.is_empty() {
            return Ok(HookDecision::none());
        }
        let (wording, arguments) = (call.external_arg_names(), call.arguments_value());
        let input = wording.to_external(&arguments);
        let payload = self.call_payload(HookEvent::PreToolUse, call, &input);
        entries.iter().for_each(|(entry, _)| call.emit_started(&entry.name()));
        let watch = |run| call.emit_finished(|| run);
        let answers = self.run_entries(entries, &payload, &watch).await;
        let answers = truncate_contexts(answers, call);
        let said = answers.into_iter().map(|(entry, answer)| {
            let answer = answer.and_then(|said| map_patch(entry, said, &wording, &input));
            // A name that the tool does not have allows nothing.
            let is_own = entry.matcher.matched_name(call.definition().names()).is_some();
            let answer = answer.map(|said| if is_own { said } else { said.without_allow() });
            (entry, combine::apply_entry_policy(entry, answer))
        });
        Ok(combine::combine_outputs(said.collect(), &arguments))
    }

    fn wrap_approver(self: Arc<Self>, inner: Arc<dyn Approver>) -> Arc<dyn Approver> {
        match self.entries.iter().any(|entry| entry.event == HookEvent::PermissionRequest) {
            true => Arc::new(ExternalHookApprover { hooks: self, inner }),
            false => inner,
        }
    }

    async fn after(
        &self,
        call: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let event =
            if result.is_ok() { HookEvent::PostToolUse } else { HookEvent::PostToolUseFailure };
        let entries = self.matching_entries(event, || call.forbidden_names());
        if entries.is_empty() {
            return Ok(());
        }
        let (response, error) = match &*result {
            Ok(output) => (tool_response(output), None),
            Err(error) => (Value::String(error.to_string()), Some(error.to_string())),
        };
        let input = call.external_arg_names().to_external(&call.arguments_value());
        let payload = HookPayload {
            tool_response: Some(&response),
            error: error.as_deref(),
            ..self.call_payload(event, call, &input)
        };
        entries.iter().for_each(|(entry, _)| call.emit_started(&entry.name()));
        let watch = |run| call.emit_finished(|| run);
        let answers = self.run_entries(entries, &payload, &watch).await;
        let answers = truncate_contexts(answers, call);
        after_call::apply_outputs(answers, call, result);
        Ok(())
    }

    /// Every command in the background ends by its own limit.
    async fn finish(&self) {
        self.background.close();
        self.background.wait().await
    }

    /// Commands have their own timeouts.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// An allow of an entry without `may_allow` is dropped before.
    fn may_allow(&self) -> bool {
        self.entries.iter().any(|entry| entry.may_allow)
    }
}

/// Maps the changed arguments back to the names that the tool uses.
fn map_patch(
    entry: &HookEntry,
    said: HookOutput,
    wording: &ExternalArgNames,
    shown: &Value,
) -> Result<HookOutput, HookFailure> {
    let failed = |name: String| HookFailure {
        message: format!(
            "the hook `{}` set `{name}` to two different values",
            entry.command.program_label()
        ),
        detail: String::new(),
    };
    let patch = wording.changed_arguments(said.patch, shown).map_err(failed)?;
    Ok(HookOutput { patch, ..said })
}

/// Truncates the context of each output for the model.
fn truncate_contexts<'e>(
    answers: Vec<(&'e HookEntry, Result<HookOutput, HookFailure>)>,
    call: &HookContext<'_>,
) -> Vec<(&'e HookEntry, Result<HookOutput, HookFailure>)> {
    let short = |said: HookOutput| {
        let context = said.context.filter(|text| !text.is_empty());
        let context =
            context.map(|text| protocol::truncate_context(text, |text| call.store_text(text)));
        HookOutput { context, ..said }
    };
    answers.into_iter().map(|(entry, answer)| (entry, answer.map(short))).collect()
}

/// Returns the tool response for a command: the structured value, or the text.
fn tool_response(output: &Output) -> Value {
    output.to_structured().unwrap_or_else(|| Value::String(output.as_text().to_owned()))
}

/// Describes the outcome of a run, for events.
fn describe_outcome(
    entry: &HookEntry,
    answer: &Result<HookOutput, HookFailure>,
    shown: Option<&Value>,
) -> String {
    let said = match answer {
        Err(HookFailure { message: what, detail }) if detail.is_empty() => {
            return format!("failed: {what}");
        }
        Err(HookFailure { message: what, detail }) => {
            return format!("failed: {what}: {}", detail.trim());
        }
        Ok(_) if entry.background => return "not waited for".to_owned(),
        Ok(said) => said,
    };
    let (verdict, reason) = match said.verdict {
        HookVerdict::None => ("none", None),
        HookVerdict::Allow if !entry.may_allow => ("none", Some("it may not allow")),
        HookVerdict::Allow => ("allow", said.reason.as_deref()),
        HookVerdict::Ask => ("ask", said.reason.as_deref()),
        HookVerdict::Deny => ("deny", said.reason.as_deref()),
        HookVerdict::Halt => ("halt", said.stop_reason.as_deref().or(said.reason.as_deref())),
    };
    let differs = |(name, value)| shown.is_some_and(|shown| shown.get(name) != Some(value));
    let changes = said.verdict < HookVerdict::Deny && said.patch.iter().any(differs);
    let changed = changes.then_some("it changes the call");
    [Some(verdict), reason, changed, said.message.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(": ")
}

fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
