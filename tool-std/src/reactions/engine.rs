//! Reacts to the events of a pipeline by rules.
//!
//! The engine reads a lossless subscription of what its rules wait for. Each event is evaluated in
//! order, and the actions of the rules that fit run one after the other as calls of the pipeline.
//! While the engine is behind, the pipeline holds other calls back, so the queue is bounded.
//!
//! **Invariant:** an event that a rule waits for is evaluated exactly once. The calls of actions are no
//! events for rules, except for what `emit_event` emits, which makes a bounded chain.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tool_sdk::event::ToolEvent;
use tool_sdk::{Call, CancellationToken, EventKind, Pipeline, Session, Subscription};

use super::counters::ReactionCounters;
use super::discovery::ReactionRules;
use super::expression::EventScope;
use super::rule::{EventRule, RuleAction};
use super::state::ReactionState;

/// How many events wait for the engine before calls wait.
const QUEUE_CAPACITY: usize = 1024;

/// How many events of rules may follow from each other.
const MAX_CHAIN_DEPTH: u32 = 8;

/// How many events of rules may follow from one event of a call.
const MAX_CHAIN_EVENTS: usize = 100;

/// The period of `max_per_minute`.
const RATE_PERIOD: Duration = Duration::from_mins(1);

/// Reacts to the events of a pipeline by the rules of a session.
///
/// Actions are calls of the pipeline in a session of their own, with the id of the given one and
/// `/reactions` behind it, and its services: rules and the audit log hold for them.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::{Call, CancellationToken, Pipeline, Registry, Session, tool, tools};
/// use tool_std::reactions::{self, ReactionEngine, ReactionRules, ReactionState};
///
/// /// Say hello.
/// #[tool(read)]
/// fn hello() -> &'static str {
///     "hello"
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let rules = ReactionRules::parse(
///     r#"
///     [[reaction]]
///     name = "greetings"
///     on = "completed"
///     when = 'event.tool == "hello"'
///     actions = [{ tool = "set_state", key = "greeted", value = true }]
///     "#,
///     "rules.toml",
/// )?;
/// let registry = Registry::builder().add(tools![hello, reactions::set_state]).build()?;
/// let (pipeline, session) = (Pipeline::new(registry), Session::new("s1"));
/// let engine = ReactionEngine::start(&pipeline, &session, &rules);
/// let progress = engine.progress();
/// let running = tokio::spawn(engine.run(CancellationToken::new()));
///
/// pipeline.call(&session, Call::new("hello", "{}")).await;
/// progress.wait_until_processed().await;
/// assert_eq!(session.extension::<ReactionState>().get("greeted"), Some(json!(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReactionEngine {
    pipeline: Pipeline,
    /// For the calls of actions.
    session: Session,
    rules: Arc<[EventRule]>,
    /// How often each rule reacted.
    rates: Vec<RateWindow>,
    events: Subscription,
    accepted: Arc<AtomicU64>,
    processed: watch::Sender<u64>,
    state: ReactionState,
    counters: ReactionCounters,
}

/// How far a [`ReactionEngine`] is; clones share it.
#[derive(Clone, Debug)]
pub struct ReactionProgress {
    accepted: Arc<AtomicU64>,
    processed: watch::Receiver<u64>,
}

impl ReactionProgress {
    /// Waits until the engine has reacted to every event of the past, or has ended.
    pub async fn wait_until_processed(&self) {
        let accepted = self.accepted.load(Ordering::Relaxed);
        let mut processed = self.processed.clone();
        // Fails when the engine has ended.
        let _ = processed.wait_for(|count| *count >= accepted).await;
    }
}

/// An event of a call, or of a rule.
struct PendingEvent {
    kind: &'static str,
    /// The kind that a tool gave it.
    emitted: Option<String>,
    value: Value,
    /// How many events of rules led to it.
    depth: u32,
}

/// The events that follow from one event.
struct EventChain {
    events: VecDeque<PendingEvent>,
    /// How many were added to the first one.
    added: usize,
}

/// How often a rule reacted in the current minute.
#[derive(Clone, Copy, Debug)]
struct RateWindow {
    start: Instant,
    count: u32,
}

impl RateWindow {
    /// Counts a reaction, if the rule may react.
    fn count_reaction(&mut self, max_per_minute: u32) -> bool {
        if self.start.elapsed() >= RATE_PERIOD {
            *self = Self { start: Instant::now(), count: 0 };
        }
        let is_allowed = self.count < max_per_minute;
        self.count += u32::from(is_allowed);
        is_allowed
    }
}

impl ReactionEngine {
    /// Subscribes to the events that the rules wait for, from now on. They are evaluated once the
    /// engine [runs](Self::run); an engine that does not run holds calls back when 1024 of them wait.
    #[must_use]
    pub fn start(pipeline: &Pipeline, session: &Session, rules: &ReactionRules) -> Self {
        let state = session.extension::<ReactionState>();
        let counters = session.extension::<ReactionCounters>();
        let session = session
            .clone()
            .with_id(format!("{}/reactions", session.id()))
            .with_service(state.clone())
            .with_service(counters.clone())
            .with_cancel(CancellationToken::new())
            .with_stateless_calls()
            .with_event_reader();
        let rules = Arc::clone(&rules.rules);
        let accepted = Arc::<AtomicU64>::default();
        let events = subscribe(pipeline, &session, &rules, &accepted);
        let window = RateWindow { start: Instant::now(), count: 0 };
        Self {
            pipeline: pipeline.clone(),
            session,
            rates: vec![window; rules.len()],
            rules,
            events,
            accepted,
            processed: watch::Sender::new(0),
            state,
            counters,
        }
    }

    /// Returns a handle that tells how far the engine is.
    #[must_use]
    pub fn progress(&self) -> ReactionProgress {
        ReactionProgress {
            accepted: Arc::clone(&self.accepted),
            processed: self.processed.subscribe(),
        }
    }

    /// Reacts until the pipeline is closed, or `ending` is cancelled and no event waits any more.
    /// Returns what the user should know: what was suppressed, and what failed.
    pub async fn run(mut self, ending: CancellationToken) -> Vec<String> {
        while let Some(Some(event)) = ending.run_until_cancelled(self.events.recv()).await {
            self.process_event(&event).await;
        }
        while let Some(event) = self.events.try_recv() {
            self.process_event(&event).await;
        }
        self.counters.notes()
    }

    async fn process_event(&mut self, event: &ToolEvent) {
        let mut chain = EventChain {
            events: VecDeque::from([PendingEvent {
                kind: event.kind.name(),
                emitted: emitted_kind(&event.kind).map(str::to_owned),
                value: serde_json::to_value(event).unwrap_or_default(),
                depth: 0,
            }]),
            added: 0,
        };
        while let Some(event) = chain.events.pop_front() {
            self.react_to(&event, &mut chain).await;
        }
        self.processed.send_modify(|count| *count += 1);
    }

    /// Lets every rule react that waits for the event. Events of actions are added to the chain.
    async fn react_to(&mut self, event: &PendingEvent, chain: &mut EventChain) {
        let rules = Arc::clone(&self.rules);
        let mut scope = EventScope::new(&event.value, &self.state.to_value());
        for (rule, window) in rules.iter().zip(0..) {
            if !rule.waits_for(event.kind, event.emitted.as_deref()) {
                continue;
            }
            if !self.should_react(rule, window, &scope) {
                continue;
            }
            for action in &rule.actions {
                self.run_action(rule, action, &scope, event.depth, chain).await;
                scope.set_state(&self.state.to_value());
            }
        }
    }

    /// Whether the condition of the rule holds and the rule has not reacted too often.
    fn should_react(&mut self, rule: &EventRule, window: usize, scope: &EventScope) -> bool {
        let held = rule.holds(scope);
        let is_allowed =
            matches!(held, Ok(true)) && self.rates[window].count_reaction(rule.max_per_minute);
        self.counters.change(&rule.name, |counters| {
            counters.events += 1;
            match &held {
                Ok(true) => {
                    counters.matches += 1;
                    counters.suppressed += u64::from(!is_allowed);
                }
                Ok(false) => {}
                Err(problem) => {
                    counters.condition_errors += 1;
                    counters.last_error = Some(format!("`when`: {problem}"));
                }
            }
        });
        is_allowed
    }

    async fn run_action(
        &self,
        rule: &EventRule,
        action: &RuleAction,
        scope: &EventScope,
        depth: u32,
        chain: &mut EventChain,
    ) {
        let done = match action.arguments.render(scope) {
            Ok(arguments) => self.call_action(action.tool, arguments, depth, chain).await,
            Err(problem) => Err(problem),
        };
        self.counters.change(&rule.name, |counters| match done {
            Ok(()) => counters.actions += 1,
            Err(problem) => {
                counters.failed_actions += 1;
                counters.last_error = Some(format!("`{}`: {problem}", action.tool));
            }
        });
    }

    async fn call_action(
        &self,
        tool: &'static str,
        arguments: Value,
        depth: u32,
        chain: &mut EventChain,
    ) -> Result<(), String> {
        let call = Call::new(tool, arguments.to_string());
        let outcome = self.pipeline.call(&self.session, call).await;
        outcome.result.map_err(|error| error.to_string())?;
        if tool == "emit_event" {
            self.add_to_chain(&arguments, depth + 1, chain);
        }
        Ok(())
    }

    /// Adds the event that an action emitted, if a rule waits for it.
    fn add_to_chain(&self, arguments: &Value, depth: u32, chain: &mut EventChain) {
        let kind = arguments["kind"].as_str().unwrap_or_default();
        if !self.rules.iter().any(|rule| rule.waits_for("emitted", Some(kind))) {
            return;
        }
        if depth > MAX_CHAIN_DEPTH || chain.added >= MAX_CHAIN_EVENTS {
            return self.counters.count_broken_chain();
        }
        let value = json!({
            "type": "emitted",
            "kind": kind,
            "data": arguments["data"],
            "tool": "emit_event",
            "session": self.session.id(),
            "severity": "info",
        });
        let emitted = Some(kind.to_owned());
        chain.events.push_back(PendingEvent { kind: "emitted", emitted, value, depth });
        chain.added += 1;
    }
}

/// Subscribes to the events that rules wait for, without those of the session of the actions, and
/// counts them.
fn subscribe(
    pipeline: &Pipeline,
    session: &Session,
    rules: &Arc<[EventRule]>,
    accepted: &Arc<AtomicU64>,
) -> Subscription {
    let (rules, accepted) = (Arc::clone(rules), Arc::clone(accepted));
    let own = session.id().to_owned();
    pipeline.subscribe_lossless(QUEUE_CAPACITY, move |event| {
        let (kind, emitted) = (event.kind.name(), emitted_kind(&event.kind));
        let is_wanted =
            *event.session != *own && rules.iter().any(|rule| rule.waits_for(kind, emitted));
        accepted.fetch_add(u64::from(is_wanted), Ordering::Relaxed);
        is_wanted
    })
}

/// Returns the kind that a tool gave to the event that it emitted.
fn emitted_kind(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::Emitted { kind, .. } => Some(kind),
        _ => None,
    }
}
