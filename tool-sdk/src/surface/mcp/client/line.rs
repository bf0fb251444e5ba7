//! One server: the connection to it while there is one, and what it offers.
//!
//! A connection is made when it is needed first, and again when it is needed after it was
//! lost, at most a few times in a while. Whatever the server offers takes the place of what
//! it offered before, in one step.
//!
//! **Invariant:** nothing is sent twice: a call that was lost stays lost. A server that was taken
//! away is not met again, whoever still holds one of its tools.

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

/// How many connections may be made within [`WINDOW`].
const MOST_ATTEMPTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(300);

/// How long the second attempt waits; every further one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// For how long news of other tools are gathered before they are looked at.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// How many tools of one server count.
const MOST_TOOLS: usize = 1000;

/// The most that is told of a failure, in characters.
const MOST_WORDS: usize = 1000;

/// How long a call may take in all, or how much longer than silence.
const LONGEST: Duration = Duration::from_secs(3600);
const PATIENCE: u32 = 12;

/// One server.
pub(super) struct Line {
    upstream: Upstream,
    /// Where the tools go; whoever has it has the server too.
    toolset: Mutex<Weak<Toolset>>,
    pins: Pins,
    roster: Roster,
    secrets: Secrets,
    state: Mutex<State>,
    /// Held while the toolset is changed, so that what is offered last is what stays.
    offering: Mutex<()>,
    /// Held while a connection is made, so that one is enough for everybody.
    connecting: tokio::sync::Mutex<()>,
    places: Places,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// The host has taken the server away.
    is_over: bool,
    tools: Vec<ForeignTool>,
    /// The tools as the toolset has them.
    added: Vec<Arc<dyn Tool>>,
    attempts: VecDeque<Instant>,
    last_error: Option<String>,
    /// Why there is no connection, where that is known.
    gone_by: Option<String>,
    complaints: String,
    /// Which of its tools are left out, and why.
    warnings: Vec<String>,
}

#[derive(Clone)]
struct Connection {
    remote: Arc<dyn Remote>,
    /// Ends who listens to it.
    _guard: Arc<DropGuard>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Line").field(&self.upstream).finish()
    }
}

/// What does not change.
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

    /// Where work for it is done that may take long.
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

    /// How long a call may take that goes on telling how far it is.
    pub(super) fn longest(&self) -> Duration {
        LONGEST.max(self.upstream.call_timeout.saturating_mul(PATIENCE))
    }
}

/// The connection.
impl Line {
    /// The connection; made when there is none.
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
                // That it is left alone is no failure of the server, and tells of the last one.
                let (attempt, wait) = self.attempt()?;
                let connected = self.connect(attempt, wait).await;
                connected.map_err(|error| self.failed(error))
            }
        }
    }

    /// Every tool as the server describes it now.
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

    /// The next attempt, and how long to wait before it.
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
            let why = state.gone_by.as_deref().unwrap_or("it went away");
            return Err(RemoteError::connection(format_args!(
                "it was started {count} times in five minutes and is left alone for {rest} s: {why}"
            )));
        }
        state.attempts.push_back(now);
        let doubled = count.checked_sub(1).map_or(0, |again| 1 << again);
        Ok((Attempt(self), FIRST_WAIT * doubled))
    }

    /// Keeps what went wrong; gives it as it may be told.
    pub(super) fn failed(&self, error: RemoteError) -> RemoteError {
        let RemoteError { class, message, source, not_run, complaints } = error;
        // Cut last: half a secret would not be found.
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

    /// Ends the connection, and takes the tools away, for good.
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
            // Taking away is never a conflict.
            let _ = toolset.exchange(&added, Vec::new());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt to connect, of which there is one at a time. One that is given up before the
/// server has shown what it does is no fault of the server.
struct Attempt<'a>(&'a Line);

impl Attempt<'_> {
    /// The server has had its time.
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
    RemoteError::connection("the server was taken away").not_run()
}

/// An error with its causes.
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

/// What comes of it in time.
async fn within<T>(patience: Duration, work: RemoteWork<'_, T>) -> Result<T, RemoteError> {
    let late = |_| RemoteError::timeout(format_args!("the server said nothing for {patience:?}"));
    timeout(patience, work).await.map_err(late)?
}

/// Looks at the tools again whenever the server says so.
async fn watch(line: Weak<Line>, remote: Arc<dyn Remote>) {
    loop {
        tokio::select! {
            () = remote.changed() => {}
            () = remote.closed() => return,
        }
        // Whoever changes one tool changes more in the same breath.
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

/// Of so few tools that are quick to take in, nobody has to wait for any.
const FEW_TOOLS: usize = 32;

/// A tool that a server lists, and what was made of its schemas, or why it cannot be called.
struct Made {
    tool: RemoteTool,
    schemas: Result<Arc<Schemas>, String>,
    said: Said,
}

/// What was made of a list of tools, and what is odd about the list.
struct Listed {
    tools: Vec<Made>,
    oddities: Vec<String>,
}

/// What the server offers.
impl Line {
    /// Whether the server offers this very tool now.
    pub(super) fn offers(&self, tool: &ForeignTool) -> bool {
        self.state().tools.iter().any(|offered| offered.is(tool))
    }

    /// Puts a tool in its own place, tied to approvals as it is by now.
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
        // It has the name that it had.
        let _ = toolset.exchange(&[before], vec![coming]);
    }

    /// Adds the tools to those of another toolset from now on.
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

    /// What is made of the tools that are wanted of these; of those that are as they were, it is
    /// made already.
    async fn made(&self, listed: &[RemoteTool]) -> Result<Listed, RemoteError> {
        let oddities = self.upstream.unknown_among(listed);
        let wanted = |tool: &&RemoteTool| self.upstream.admits(&tool.name) && tool.is_for_models();
        // Two of one name count once.
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
                // Of a tool that is left out nobody reads anything.
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
            made.ok_or_else(|| RemoteError::timeout("its tools could not be taken in in time"))?;
        Ok(Listed { tools, oddities })
    }

    /// Puts these tools in the place of those that the server offered before. What an earlier
    /// connection listed counts for nothing any more.
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
            // Nobody is told of a change that is none.
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

    /// Whether these are the tools that the server offers already, tied to the same approvals.
    fn has_just(&self, tools: &[ForeignTool]) -> bool {
        let state = self.state();
        let same = |(one, other): (&ForeignTool, &ForeignTool)| {
            one.is(other) && one.definition().revision == other.definition().revision
        };
        state.tools.len() == tools.len() && state.tools.iter().zip(tools).all(same)
    }

    /// The tools that can be called, and why the others cannot.
    fn take_in(self: &Arc<Self>, listed: Vec<Made>) -> (Vec<ForeignTool>, Vec<String>) {
        let (mut tools, mut warnings) = (Vec::<ForeignTool>::new(), Vec::new());
        let names = listed.iter().map(|made| made.tool.name.clone()).collect::<Vec<_>>();
        let names = name::names(self.name(), names.iter().map(String::as_str));
        for Made { tool, schemas, said } in listed {
            let raw = tool.name.escape_debug().take(80).collect::<String>();
            let Some(called) = names.get(tool.name.as_str()) else {
                warnings.push(format!("{raw}: left out, its name is not of a form that is taken"));
                continue;
            };
            if tools.iter().any(|other| other.raw() == tool.name) {
                warnings.push(format!("{raw}: left out, the server has two of that name"));
                continue;
            }
            if tools.len() == MOST_TOOLS {
                warnings.push(format!("only {MOST_TOOLS} of its tools count"));
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

    /// The names of all tools there are that are not the server's own: those of the host and
    /// of other servers, as models call them and as their servers do.
    pub(super) fn strangers(&self) -> Strangers {
        let own = name::namespace(self.name());
        let names = self.toolset().map(|toolset| {
            let view = toolset.view();
            let names = view.definitions().map(|definition| definition.name.to_string());
            names.filter(|name| !name.starts_with(&own)).collect()
        });
        self.roster.strangers(self.name(), names.unwrap_or_default())
    }

    /// Everything that is taken as seen of its tools, by their names here.
    #[cfg(feature = "cli")]
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        let tools = self.state().tools.clone();
        tools.iter().map(|tool| (tool.definition().name.to_string(), tool.text())).collect()
    }

    /// Takes what was shown as seen, where that is what the server says now; whether it is.
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

    /// Takes everything that the server offers now as seen.
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
