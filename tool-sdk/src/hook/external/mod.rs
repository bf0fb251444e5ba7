//! Hooks that are commands: programs of the user that read a call as JSON and answer it.
//!
//! The configuration and the protocol are those that Claude Code made common, so commands
//! written for it work here. All commands of one event run at the same time on the same
//! input, and what they say is put together in the order of the configuration.
//!
//! **Invariant:** a command that fails, hangs or cannot be started decides nothing; unless
//! its entry says otherwise, the call that it should have judged does not run.

mod after;
mod approver;
mod compose;
mod config;
mod files;
mod matcher;
mod protocol;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use self::approver::HooksFirst;
pub use self::config::HookConfigError;
use self::config::{Entry, Event};
use self::protocol::{Failure, Payload, Said};
use super::{Hook, HookRun, HookedCall, Opinion, Step, Verdict};
use crate::content::Output;
use crate::error::ToolError;
use crate::permission::{Approver, Mode};
use crate::process::{self, ChildEnv};
use crate::tool::Definition;

/// How much of a command's output is kept.
const KEEP: usize = 64 << 10;

/// Hooks that are commands, read from a configuration.
///
/// How a command ends is what it says:
///
/// | exit | means |
/// |---|---|
/// | 0, plain text or nothing | no opinion |
/// | 0, JSON | what the JSON says |
/// | 0, broken JSON | the hook failed |
/// | 2, whatever it printed | no; standard error is the reason |
/// | anything else, a signal, no time left, not started | the hook failed |
///
/// Besides the common keys an entry may have two more. `on_error` is `deny` or `ignore`:
/// when nothing is said, a hook that fails before a call or an ask denies it, and one that
/// fails after a call is ignored. With `deny`, the result of a call that such a hook could
/// not look at is not shown. `may_allow` is whether an allow counts; it never lifts a denial.
///
/// The limit is 10 seconds before a call or an ask and 60 after a call, unless `timeout`
/// says otherwise. A command that is `async` has no say and no call waits for it; the end of the
/// program does, with [`Pipeline::finish`](crate::Pipeline::finish).
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
    entries: Vec<Entry>,
    folder: Option<PathBuf>,
    env: ChildEnv,
    mode: Mode,
    /// What no call waits for.
    background: TaskTracker,
}

impl ExternalHooks {
    /// Reads a configuration, and says what in it has no effect.
    ///
    /// It is an object of events, or a settings file that has one under `hooks`.
    #[must_use]
    pub fn from_json(config: &str) -> (Self, Vec<HookConfigError>) {
        match serde_json::from_str(config) {
            Ok(config) => Self::from_value(&config),
            Err(error) => {
                let message = format!("expected JSON: {error}");
                let error = HookConfigError { path: "hooks".to_owned(), message, fatal: true };
                (Self::of(Vec::new()), vec![error])
            }
        }
    }

    /// Reads a configuration that was written in another format.
    #[must_use]
    pub fn from_value(config: &Value) -> (Self, Vec<HookConfigError>) {
        let (entries, errors) = config::read(config);
        (Self::of(entries), errors)
    }

    fn of(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            folder: None,
            env: ChildEnv::inherited(),
            mode: Mode::default(),
            background: TaskTracker::new(),
        }
    }

    /// The folder that commands run in and are told of; the host's own when nothing is said.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// The environment of commands; [`ChildEnv::inherited`] when nothing is said.
    #[must_use]
    pub fn with_env(mut self, env: ChildEnv) -> Self {
        self.env = env;
        self
    }

    /// The mode that commands are told of.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether there is no command.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The files that the commands name, in the folder that they run in. Who changes one of
    /// them decides what the hooks say, so a host protects them with `Workspace::protect`.
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
    /// assert!(hooks.files()[0].ends_with("guard.sh"));
    /// ```
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let folder = self.folder();
        self.entries.iter().flat_map(|entry| files::named(&entry.command, &folder)).collect()
    }

    /// An approver that lets the hooks for permission requests answer first, and `inner`
    /// what they leave open.
    #[must_use]
    pub fn approver(self: Arc<Self>, inner: Arc<dyn Approver>) -> impl Approver {
        HooksFirst { hooks: self, inner }
    }

    /// What matchers speak of that is none of `tools`, each with the place of its hook.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only a command line tells"))]
    pub(crate) fn unmatched<'a>(
        &'a self,
        tools: impl Iterator<Item = &'a Definition>,
    ) -> Vec<(&'a str, &'a str)> {
        let tools: Vec<Vec<&str>> = tools.map(|tool| tool.names().collect()).collect();
        let of_entry = |entry: &'a Entry| {
            entry.matcher.unmatched(&tools).into_iter().map(|name| (&*entry.place, name))
        };
        self.entries.iter().flat_map(of_entry).collect()
    }

    /// The hooks of `event` for the tool that has these names.
    fn matching<'t>(
        &self,
        event: Event,
        tool: impl Iterator<Item = &'t str> + Clone,
    ) -> Vec<&Entry> {
        let looks = |entry: &&Entry| entry.event == event && entry.matcher.matches(tool.clone());
        self.entries.iter().filter(looks).collect()
    }

    /// What is the same for every call.
    fn payload(&self, event: Event) -> Payload<'_> {
        Payload {
            session_id: "",
            transcript_path: None,
            cwd: self.folder().to_string_lossy().into_owned(),
            permission_mode: mode_name(self.mode),
            hook_event_name: event.as_str(),
            tool_name: "",
            tool_input: Value::Null,
            tool_use_id: String::new(),
            agent: None,
            permission: None,
            subjects: None,
            tool_response: None,
            error: None,
            duration_ms: None,
        }
    }

    fn payload_of<'a>(&'a self, event: Event, call: &HookedCall<'a>) -> Payload<'a> {
        Payload {
            session_id: call.session().id(),
            tool_name: call.definition().name.as_str(),
            tool_input: call.value(),
            tool_use_id: call.id().to_string(),
            agent: call.session().agent(),
            duration_ms: call.elapsed().map(millis),
            ..self.payload(event)
        }
    }

    fn folder(&self) -> Cow<'_, Path> {
        match &self.folder {
            Some(folder) => Cow::Borrowed(folder),
            None => Cow::Owned(std::env::current_dir().unwrap_or_default()),
        }
    }

    /// Runs `entries` at the same time; the answers come in the order of the entries.
    async fn run_all<'e>(
        &self,
        entries: Vec<&'e Entry>,
        payload: &Payload<'_>,
        watch: &(dyn Fn(HookRun) + Sync),
    ) -> Vec<(&'e Entry, Result<Said, Failure>)> {
        let input = match serde_json::to_vec(payload) {
            Ok(input) => input,
            Err(error) => {
                let what = "the call could not be shown to its hooks".to_owned();
                let failure = Failure { what, detail: error.to_string() };
                return entries.into_iter().map(|entry| (entry, Err(failure.clone()))).collect();
            }
        };
        let runs = entries.into_iter().map(async |entry| {
            let started = Instant::now();
            let answer = self.run(entry, &input).await;
            watch(HookRun {
                hook: entry.name(),
                outcome: outcome(entry, &answer),
                elapsed_ms: millis(started.elapsed()),
            });
            (entry, answer)
        });
        join_all(runs).await
    }

    async fn run(&self, entry: &Entry, input: &[u8]) -> Result<Said, Failure> {
        let run = entry
            .command
            .to_run()
            .folder(self.folder())
            .env(self.env.clone().with("CLAUDE_PROJECT_DIR", self.folder().as_os_str()))
            .stdin(input)
            .timeout(entry.timeout)
            .keep(KEEP);
        if entry.background {
            self.background.spawn(process::run(run));
            return Ok(Said::default());
        }
        let ended = process::run(run).await;
        protocol::meaning(entry.event, entry.command.label(), entry.timeout, ended.as_ref())
    }
}

impl Hook for ExternalHooks {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("external")
    }

    fn before<'a>(&'a self, call: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        let entries = self.matching(Event::PreToolUse, call.definition().names());
        if entries.is_empty() {
            return Step::now(Ok(Opinion::none()));
        }
        Step::later(async move {
            let payload = self.payload_of(Event::PreToolUse, call);
            let watch = |run| call.watch(|| run);
            let answers = self.run_all(entries, &payload, &watch).await;
            let answers = with_short_contexts(answers, call);
            let said = answers.into_iter().map(|(entry, answer)| compose::weighed(entry, answer));
            Ok(compose::opinion(said.collect(), &payload.tool_input))
        })
    }

    fn after<'a>(
        &'a self,
        call: &'a HookedCall<'_>,
        result: &'a mut Result<Output, ToolError>,
    ) -> Step<'a, Result<(), ToolError>> {
        let event = if result.is_ok() { Event::PostToolUse } else { Event::PostToolUseFailure };
        let entries = self.matching(event, call.definition().names());
        if entries.is_empty() {
            return Step::now(Ok(()));
        }
        Step::later(async move {
            let (response, error) = match &*result {
                Ok(output) => (response(output), None),
                Err(error) => (Value::String(error.to_string()), Some(error.to_string())),
            };
            let payload =
                Payload { tool_response: Some(response), error, ..self.payload_of(event, call) };
            let watch = |run| call.watch(|| run);
            let answers = self.run_all(entries, &payload, &watch).await;
            let answers = with_short_contexts(answers, call);
            after::apply(answers, call, result);
            Ok(())
        })
    }

    /// Every command in the background ends by its own limit.
    fn finish(&self) -> Step<'_, ()> {
        self.background.close();
        Step::later(self.background.wait())
    }

    /// Every command has a limit of its own.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// An allow from an entry that may not give it does not get this far.
    fn may_allow(&self) -> bool {
        self.entries.iter().any(|entry| entry.may_allow)
    }
}

/// What was said, with no more context than a model should read.
fn with_short_contexts<'e>(
    answers: Vec<(&'e Entry, Result<Said, Failure>)>,
    call: &HookedCall<'_>,
) -> Vec<(&'e Entry, Result<Said, Failure>)> {
    let short = |said: Said| {
        let context = said.context.filter(|text| !text.is_empty());
        let context = context.map(|text| protocol::shortened(text, |text| call.keep(text)));
        Said { context, ..said }
    };
    answers.into_iter().map(|(entry, answer)| (entry, answer.map(short))).collect()
}

/// What a result is for a command: the structured value, or the text.
fn response(output: &Output) -> Value {
    output.to_structured().unwrap_or_else(|| Value::String(output.as_text().to_owned()))
}

/// The mode by the name that commands know it under.
fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto | Mode::Strict => "default",
        Mode::Plan | Mode::Explore => "plan",
        Mode::Bypass => "bypassPermissions",
    }
}

/// What came of a run, for events.
fn outcome(entry: &Entry, answer: &Result<Said, Failure>) -> String {
    let said = match answer {
        Err(Failure { what, detail }) if detail.is_empty() => return format!("failed: {what}"),
        Err(Failure { what, detail }) => return format!("failed: {what}: {}", detail.trim()),
        Ok(_) if entry.background => return "not waited for".to_owned(),
        Ok(said) => said,
    };
    let (verdict, reason) = match said.verdict {
        Verdict::None => ("none", None),
        Verdict::Allow if !entry.may_allow => ("none", Some("it may not allow")),
        Verdict::Allow => ("allow", said.reason.as_deref()),
        Verdict::Ask => ("ask", said.reason.as_deref()),
        Verdict::Deny => ("deny", said.reason.as_deref()),
        Verdict::Halt => ("halt", said.stop_reason.as_deref().or(said.reason.as_deref())),
    };
    [Some(verdict), reason, said.message.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(": ")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
