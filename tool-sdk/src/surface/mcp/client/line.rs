//! The connection to one server, its state, and the tools that it offers.
//!
//! A connection is opened on first use, and reopened on use after it was lost, with backoff and at
//! most five times in five minutes. Each listing replaces the earlier one in one step.
//!
//! **Invariant:** no call is sent twice: a call that was lost is not retried. A server that was
//! removed is not reconnected, even while some of its tools are still referenced.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::apart::{self, Places, Wanted};
use super::pins::Pins;
use super::questions::Questions;
use super::remote::{ErrorClass, Remote, RemoteError, RemoteTool, RemoteWork};
use super::roster::{Roster, Strangers};
use super::secrets::Secrets;
use super::status::Status;
use super::tool::{ForeignTool, Said, Schemas};
use super::upstream::{Reach, Upstream};
use super::{name, wire};
use crate::tool::Tool;
use crate::toolset::Toolset;

/// How many connections may be opened within [`WINDOW`].
const MOST_ATTEMPTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(300);

/// The delay before the second attempt; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// How long notifications of changed tools are collected before the tools are listed.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// How many tools of one server are used; the others are left out with a warning.
const MOST_TOOLS: usize = 1000;

/// The longest error message, in characters.
const MOST_WORDS: usize = 1000;

/// A call ends after an hour, or after twelve times its timeout if that is longer, even while the
/// server reports progress.
const LONGEST: Duration = Duration::from_secs(3600);
const PATIENCE: u32 = 12;

/// One server.
pub(super) struct Line {
    upstream: Upstream,
    /// Where the tools are published. Weak, because its owner owns this connection as well.
    toolset: Mutex<Weak<Toolset>>,
    pins: Pins,
    roster: Roster,
    secrets: Secrets,
    state: Mutex<State>,
    /// Held while the toolset is changed, so that the last listing wins.
    offering: Mutex<()>,
    /// Held while a connection is opened, so that concurrent callers share it.
    connecting: tokio::sync::Mutex<()>,
    places: Places,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Whether the host has removed the server.
    is_over: bool,
    tools: Vec<ForeignTool>,
    /// The tools as they were added to the toolset.
    added: Vec<Arc<dyn Tool>>,
    attempts: VecDeque<Instant>,
    last_error: Option<String>,
    /// Why there is no connection, where that is known.
    gone_by: Option<String>,
    complaints: String,
    /// Which tools are left out, and why.
    warnings: Vec<String>,
}

#[derive(Clone)]
struct Connection {
    remote: Arc<dyn Remote>,
    /// Stops watching for changed tools when the last clone is dropped.
    _guard: Arc<DropGuard>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Line").field(&self.upstream).finish()
    }
}

/// Configuration.
impl Line {
    pub(super) fn new(
        upstream: Upstream,
        toolset: &Arc<Toolset>,
        pins: Pins,
        roster: Roster,
    ) -> Arc<Self> {
        let secrets = Secrets::of(&upstream.reach);
        Arc::new(Self {
            upstream,
            secrets,
            toolset: Mutex::new(Arc::downgrade(toolset)),
            pins,
            roster,
            state: Mutex::default(),
            offering: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            places: Places::default(),
        })
    }

    pub(super) fn name(&self) -> &str {
        self.upstream.name()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.upstream.enabled
    }

    pub(super) fn identity(&self) -> Value {
        self.upstream.reach.identity()
    }

    /// The threads and their limits for work that may take long.
    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    pub(super) fn pins(&self) -> &Pins {
        &self.pins
    }

    pub(super) fn call_timeout(&self) -> Duration {
        self.upstream.call_timeout
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(super) fn questions(&self) -> &Questions {
        &self.upstream.questions
    }

    /// How long a call may take in all, while the server reports progress.
    pub(super) fn longest(&self) -> Duration {
        LONGEST.max(self.upstream.call_timeout.saturating_mul(PATIENCE))
    }
}

/// Connecting.
impl Line {
    /// Returns the live connection, or opens one.
    pub(super) async fn remote(self: &Arc<Self>) -> Result<Arc<dyn Remote>, RemoteError> {
        if let Some(remote) = self.living() {
            return Ok(remote);
        }
        let _turn = self.connecting.lock().await;
        match self.living() {
            Some(remote) => Ok(remote),
            None => {
                if !self.is_enabled() {
                    return Err(RemoteError::connection("it is switched off").not_run());
                }
                // A refused attempt is not recorded: it is not a failure of the server, and repeats the last one.
                let (attempt, wait) = self.attempt()?;
                let connected = self.connect(attempt, wait).await;
                connected.map_err(|error| self.failed(error))
            }
        }
    }

    /// Lists the tools as the server describes them now.
    pub(super) async fn described(self: &Arc<Self>) -> Result<Vec<RemoteTool>, RemoteError> {
        let remote = self.remote().await?;
        let listed = within(self.upstream.startup_timeout, remote.tools()).await;
        listed.map_err(|error| self.failed(error))
    }

    /// Reads a resource.
    pub(super) async fn read(self: &Arc<Self>, uri: &str) -> Result<Value, RemoteError> {
        let remote = self.remote().await?;
        let read = within(self.call_timeout(), remote.read(uri)).await;
        read.map_err(|error| self.failed(error))
    }

    fn living(&self) -> Option<Arc<dyn Remote>> {
        let state = self.state();
        let remote = &state.connection.as_ref()?.remote;
        (!remote.is_closed()).then(|| Arc::clone(remote))
    }

    async fn connect(
        self: &Arc<Self>,
        attempt: Attempt<'_>,
        wait: Duration,
    ) -> Result<Arc<dyn Remote>, RemoteError> {
        sleep(wait).await;
        if self.state().is_over {
            return Err(taken_away());
        }
        let patience = self.upstream.startup_timeout;
        let late = |_| {
            RemoteError::timeout(format_args!("the server did not get ready within {patience:?}"))
        };
        let connected = async {
            let remote = open(&self.upstream).await?;
            let listed = remote.tools().await;
            let tools = listed.map_err(|error| error.complaining(remote.complaints()))?;
            let made = self.made(&tools).await?;
            Ok((remote, made))
        };
        let connected = timeout(patience, connected).await;
        attempt.counts();
        let (remote, made) = connected.map_err(late)??;
        let gone = CancellationToken::new();
        let connection =
            Connection { remote: Arc::clone(&remote), _guard: Arc::new(gone.clone().drop_guard()) };
        {
            let mut state = self.state();
            if state.is_over {
                return Err(taken_away());
            }
            state.connection = Some(connection);
            state.gone_by = None;
        }
        self.offer(&remote, made);
        let watch = watch(Arc::downgrade(self), Arc::clone(&remote));
        tokio::spawn(gone.run_until_cancelled_owned(watch));
        Ok(remote)
    }

    /// Registers an attempt to connect, and returns the delay before it.
    ///
    /// # Errors
    ///
    /// Fails when there were too many attempts within [`WINDOW`].
    fn attempt(&self) -> Result<(Attempt<'_>, Duration), RemoteError> {
        let mut state = self.state();
        let now = Instant::now();
        while state.attempts.front().is_some_and(|at| now.duration_since(*at) > WINDOW) {
            state.attempts.pop_front();
        }
        let count = state.attempts.len();
        if count >= MOST_ATTEMPTS {
            let since = state.attempts.front().map_or(WINDOW, |at| now.duration_since(*at));
            let rest = WINDOW.saturating_sub(since).as_secs();
            let why = state.gone_by.as_deref().unwrap_or("it disconnected");
            return Err(RemoteError::connection(format_args!(
                "it was started {count} times in five minutes; the next attempt is possible in {rest} s: {why}"
            )));
        }
        state.attempts.push_back(now);
        let doubled = count.checked_sub(1).map_or(0, |again| 1 << again);
        Ok((Attempt(self), FIRST_WAIT * doubled))
    }

    /// Records an error for the status; returns it redacted and truncated.
    pub(super) fn failed(&self, error: RemoteError) -> RemoteError {
        let RemoteError { class, message, source, not_run, complaints } = error;
        // Truncate after redacting: half a secret would not be recognized.
        let message: String = self.secrets.told(&message).chars().take(MOST_WORDS).collect();
        let mut told = RemoteError::new(class, message);
        told.not_run = not_run;
        told.source = source.map(|source| self.secrets.told(&in_one_line(&*source)).into());
        let mut state = self.state();
        if class != ErrorClass::Aborted {
            state.last_error = Some(told.message.clone().into_owned());
            let is_there = state.connection.as_ref().is_some_and(|it| !it.remote.is_closed());
            if class == ErrorClass::Connection || !is_there {
                state.gone_by = state.last_error.clone();
            }
        }
        if let Some(connection) = state.connection.clone() {
            state.complaints = connection.remote.complaints();
        }
        if !complaints.is_empty() {
            state.complaints = complaints;
        }
        told
    }

    /// Closes the connection and removes the tools, permanently.
    pub(super) fn close(&self) {
        let _turn = self.offering.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        state.is_over = true;
        state.connection = None;
        state.tools.clear();
        self.roster.remove(self.name());
        let added = std::mem::take(&mut state.added);
        drop(state);
        if let Some(toolset) = self.toolset() {
            // Removing tools never conflicts.
            let _ = toolset.exchange(&added, Vec::new());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt to connect; there is one at a time. One that is dropped before the server had its
/// time is not counted.
struct Attempt<'a>(&'a Line);

impl Attempt<'_> {
    /// Counts the attempt.
    fn counts(self) {
        std::mem::forget(self);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.state().attempts.pop_back();
    }
}

fn taken_away() -> RemoteError {
    RemoteError::connection("the server was removed").not_run()
}

/// Joins an error and its causes.
fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

async fn open(upstream: &Upstream) -> Result<Arc<dyn Remote>, RemoteError> {
    match &upstream.reach {
        Reach::Launch(launch) => wire::launch(launch, &upstream.questions).await,
        Reach::Address(address) => wire::dial(address, &upstream.questions).await,
        Reach::Custom(connect) => connect().await,
    }
}

/// Runs `work` with a timeout.
async fn within<T>(patience: Duration, work: RemoteWork<'_, T>) -> Result<T, RemoteError> {
    let late = |_| RemoteError::timeout(format_args!("the server said nothing for {patience:?}"));
    timeout(patience, work).await.map_err(late)?
}

/// Lists the tools again after each notification that they changed.
async fn watch(line: Weak<Line>, remote: Arc<dyn Remote>) {
    loop {
        tokio::select! {
            () = remote.changed() => {}
            () = remote.closed() => return,
        }
        // Servers that change one tool mostly change more right after it.
        sleep(DEBOUNCE).await;
        let Some(patience) = line.upgrade().map(|line| line.upstream.startup_timeout) else {
            return;
        };
        let listed = within(patience, remote.tools()).await;
        let Some(line) = line.upgrade() else { return };
        let made = match listed {
            Ok(tools) => line.made(&tools).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(made) => line.offer(&remote, made),
            Err(error) => drop(line.failed(error)),
        }
    }
}

/// Lists up to this length are prepared inline when all of their schemas are cheap.
const FEW_TOOLS: usize = 32;

/// A listed tool with its compiled schemas, or why it cannot be called.
struct Made {
    tool: RemoteTool,
    schemas: Result<Arc<Schemas>, String>,
    said: Said,
}

/// A prepared list of tools, and the warnings about the list.
struct Listed {
    tools: Vec<Made>,
    oddities: Vec<String>,
}

/// Listing and publishing tools.
impl Line {
    /// Whether the server offers exactly this tool now.
    pub(super) fn offers(&self, tool: &ForeignTool) -> bool {
        self.state().tools.iter().any(|offered| offered.is(tool))
    }

    /// Replaces a tool in the toolset by one with its current revision.
    pub(super) fn renew(&self, tool: &ForeignTool) {
        let _turn = self.offering.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        let Some(at) = state.tools.iter().position(|offered| offered.is(tool)) else { return };
        let (Some(before), Some(toolset)) = (state.added.get(at).cloned(), self.toolset()) else {
            return;
        };
        let renewed = state.tools[at].renewed();
        let coming: Arc<dyn Tool> = Arc::new(renewed.clone());
        (state.tools[at], state.added[at]) = (renewed, Arc::clone(&coming));
        drop(state);
        // The name is the same, so there is no conflict.
        let _ = toolset.exchange(&[before], vec![coming]);
    }

    /// Publishes the tools in another toolset from now on.
    #[cfg(feature = "cli")]
    pub(super) fn lend_to(&self, toolset: &Arc<Toolset>) {
        *self.toolset.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(toolset);
        let coming = self.state().added.clone();
        if let Err(conflict) = toolset.exchange(&[], coming) {
            self.state().warnings.push(format!("its tools are left out: {conflict}"));
        }
    }

    fn toolset(&self) -> Option<Arc<Toolset>> {
        self.toolset.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Compiles the schemas of the tools that the configuration allows; schemas that did not change
    /// are reused.
    async fn made(&self, listed: &[RemoteTool]) -> Result<Listed, RemoteError> {
        let oddities = self.upstream.unknown_among(listed);
        let wanted = |tool: &&RemoteTool| self.upstream.admits(&tool.name) && tool.is_for_models();
        // Twice the limit, because duplicates are dropped later.
        let listed: Vec<RemoteTool> =
            listed.iter().filter(wanted).take(2 * MOST_TOOLS).cloned().collect();
        let known: BTreeMap<String, Arc<Schemas>> = {
            let state = self.state();
            let each = state.tools.iter();
            each.map(|tool| (tool.raw().to_owned(), Arc::clone(tool.schemas()))).collect()
        };
        let is_quick = listed.len() <= FEW_TOOLS && listed.iter().all(Schemas::is_quick);
        let make = move |waiting: &Wanted| {
            let of = |tool: RemoteTool| {
                let same = known.get(&tool.name).filter(|schemas| schemas.is_of(&tool));
                let schemas = match same {
                    Some(schemas) => Ok(Arc::clone(schemas)),
                    None => Schemas::of(&tool).map(Arc::new),
                };
                // The text of a tool that is left out is not checked.
                let said = schemas.as_ref().map(|_| Said::of(&tool)).unwrap_or_default();
                Made { tool, schemas, said }
            };
            listed.into_iter().take_while(|_| !waiting.is_over()).map(of).collect()
        };
        let made = match is_quick {
            true => Some(make(&Wanted::default())),
            false => apart::run(&self.places.lists, self.upstream.startup_timeout, make).await,
        };
        let tools =
            made.ok_or_else(|| RemoteError::timeout("checking its tool schemas took too long"))?;
        Ok(Listed { tools, oddities })
    }

    /// Replaces the published tools by these. A listing of an earlier connection is ignored.
    fn offer(self: &Arc<Self>, remote: &Arc<dyn Remote>, listed: Listed) {
        let _turn = self.offering.lock().unwrap_or_else(PoisonError::into_inner);
        let is_now = |now: &Connection| Arc::ptr_eq(&now.remote, remote);
        if !self.state().connection.as_ref().is_some_and(is_now) {
            return;
        }
        let Some(toolset) = self.toolset() else { return };
        let (tools, mut warnings) = self.take_in(listed.tools);
        warnings.extend(listed.oddities);
        warnings.extend(remote.remarks().iter().map(|remark| self.secrets.told(remark)));
        if self.has_just(&tools) {
            // An unchanged list must not notify the subscribers of the toolset.
            self.state().warnings = warnings;
            return;
        }
        let mut coming: Vec<Arc<dyn Tool>> = Vec::new();
        let before = self.state().added.clone();
        for tool in &tools {
            coming.push(Arc::new(tool.clone()));
        }
        match toolset.exchange(&before, coming.clone()) {
            Ok(()) => {
                let names = tools.iter().map(|tool| tool.raw().to_owned()).collect();
                self.roster.set(self.name(), names);
                let mut state = self.state();
                (state.tools, state.added) = (tools, coming);
                state.warnings = warnings;
            }
            Err(conflict) => {
                warnings.push(format!("its tools are left out: {conflict}"));
                self.state().warnings = warnings;
            }
        }
    }

    /// Whether these tools, with these revisions, are published already.
    fn has_just(&self, tools: &[ForeignTool]) -> bool {
        let state = self.state();
        let same = |(one, other): (&ForeignTool, &ForeignTool)| {
            one.is(other) && one.definition().revision == other.definition().revision
        };
        state.tools.len() == tools.len() && state.tools.iter().zip(tools).all(same)
    }

    /// Returns the tools that can be called, and why the others cannot.
    fn take_in(self: &Arc<Self>, listed: Vec<Made>) -> (Vec<ForeignTool>, Vec<String>) {
        let (mut tools, mut warnings) = (Vec::<ForeignTool>::new(), Vec::new());
        let names = listed.iter().map(|made| made.tool.name.clone()).collect::<Vec<_>>();
        let names = name::names(self.name(), names.iter().map(String::as_str));
        for Made { tool, schemas, said } in listed {
            let raw = tool.name.escape_debug().take(80).collect::<String>();
            let Some(called) = names.get(tool.name.as_str()) else {
                warnings.push(format!(
                    "{raw}: left out, its name is not 1 to 128 of a-z A-Z 0-9 _ - ."
                ));
                continue;
            };
            if tools.iter().any(|other| other.raw() == tool.name) {
                warnings.push(format!("{raw}: left out, the server lists the name twice"));
                continue;
            }
            if tools.len() == MOST_TOOLS {
                warnings.push(format!("only the first {MOST_TOOLS} of its tools are used"));
                break;
            }
            match schemas {
                Ok(schemas) => {
                    tools.push(ForeignTool::new(self, called.clone(), &tool, schemas, said));
                }
                Err(why) => warnings.push(format!("{raw}: left out, {why}")),
            }
        }
        (tools, warnings)
    }

    /// Returns the tools that are not the server's own, by the names that models and their servers
    /// use.
    pub(super) fn strangers(&self) -> Strangers {
        let own = name::namespace(self.name());
        let names = self.toolset().map(|toolset| {
            let view = toolset.view();
            let names = view.definitions().map(|definition| definition.name.to_string());
            names.filter(|name| !name.starts_with(&own)).collect()
        });
        self.roster.strangers(self.name(), names.unwrap_or_default())
    }

    /// Returns the definition that pinning would record for each tool, by its name here.
    #[cfg(feature = "cli")]
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        let tools = self.state().tools.clone();
        tools.iter().map(|tool| (tool.definition().name.to_string(), tool.text())).collect()
    }

    /// Pins the tools if `shown` is what the server says now; returns whether it is.
    #[cfg(feature = "cli")]
    pub(super) fn pin_shown(
        &self,
        shown: &BTreeMap<String, String>,
    ) -> Result<bool, crate::error::ToolError> {
        let tools = self.state().tools.clone();
        let is_shown =
            |tool: &ForeignTool| shown.get(tool.definition().name.as_str()) == Some(&tool.text());
        if tools.len() != shown.len() || !tools.iter().all(is_shown) {
            return Ok(false);
        }
        tools.iter().try_for_each(ForeignTool::pin).map(|()| true)
    }

    /// Pins every tool as the server describes it now.
    pub(super) fn pin_all(&self) -> Result<(), crate::error::ToolError> {
        let tools = self.state().tools.clone();
        tools.iter().try_for_each(ForeignTool::pin)
    }

    pub(super) fn status(&self) -> Status {
        let strangers = self.strangers();
        let state = self.state();
        let connection = state.connection.as_ref();
        let connected = connection.is_some_and(|connection| !connection.remote.is_closed());
        let complaints = connection.map(|connection| connection.remote.complaints());
        let odd = state.tools.iter().flat_map(|tool| {
            let odd = tool.oddities(&strangers);
            odd.into_iter().map(|one| format!("{}: {one}", tool.raw()))
        });
        Status {
            name: self.name().to_owned(),
            enabled: self.is_enabled(),
            reach: self.identity(),
            connected,
            tools: state.added.iter().map(|tool| tool.definition().name.to_string()).collect(),
            last_error: state.last_error.clone(),
            warnings: state.warnings.iter().cloned().chain(odd).collect(),
            stderr: self.secrets.told(complaints.as_ref().unwrap_or(&state.complaints)),
        }
    }
}
