//! Reactions under load: events at a steady rate, events faster than the rules react, and rules that
//! answer each event with more events.
//!
//! `TOOL_STD_TEST_LOAD_SECONDS` is how long 10,000 events a second are emitted; two seconds without it.

#![cfg(all(target_os = "linux", feature = "reactions"))]
#![expect(clippy::unwrap_used, reason = "what these tests are made of unwraps as they do")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tool_sdk::{Call, CancellationToken, Context, Pipeline, Registry, Session, tool, tools};
use tool_std::reactions::{
    self, ReactionCounters, ReactionEngine, ReactionProgress, ReactionRules, ReactionState,
};

/// The steady rate of events that rules wait for. As many that no rule waits for come beside them.
const EVENTS_PER_SECOND: u64 = 10_000;

/// How many calls emit them at the same time.
const EMITTERS: u64 = 4;

/// How often a second each of these calls emits.
const BURSTS_PER_SECOND: u32 = 100;

/// Memory that grows by more than this is not bounded by the queue of 1,024 events.
const MAX_GROWTH_KIB: u64 = 32 << 10;

/// Emit numbered events.
#[tool(read, register = false, timeout = "10m")]
async fn emit_numbers(
    /// The first number.
    first: u64,
    /// How many.
    count: u64,
    /// How many at once, until others may work.
    burst: u64,
    /// Whether the bursts come at a steady rate, or as fast as they can.
    is_paced: bool,
    /// A text that each event carries.
    text: String,
    cx: &Context,
) -> String {
    // Bursts that were missed follow at once, so that the rate holds.
    let mut clock = tokio::time::interval(Duration::from_secs(1) / BURSTS_PER_SECOND);
    for number in first..first + count {
        if number % burst == 0 {
            if is_paced {
                clock.tick().await;
            } else {
                tokio::task::yield_now().await;
            }
        }
        cx.emit("number", json!({ "number": number, "text": text }));
        cx.emit("noise", number);
    }
    count.to_string()
}

/// A session whose rules react.
struct LoadedSession {
    pipeline: Pipeline,
    session: Session,
    progress: ReactionProgress,
    running: JoinHandle<Vec<String>>,
    ending: CancellationToken,
}

/// What the load was, and what it took.
#[derive(Debug)]
struct LoadReport {
    events: u64,
    emitted_in: Duration,
    handled_in: Duration,
    memory_growth_kib: u64,
}

impl LoadReport {
    fn print(&self, what: &str) {
        let rate = |time: Duration| self.events as f64 / time.as_secs_f64();
        eprintln!(
            "{what}: {} events, emitted at {:.0} a second and handled at {:.0}, 0 lost, {} KiB more memory",
            self.events,
            rate(self.emitted_in),
            rate(self.handled_in),
            self.memory_growth_kib
        );
    }
}

impl LoadedSession {
    fn start(rules: &str) -> Self {
        let rules = ReactionRules::parse(rules, "rules.toml").unwrap();
        let actions = tools![reactions::set_state, reactions::emit_event];
        let registry = Registry::builder().add(tools![emit_numbers]).add(actions).build().unwrap();
        let (pipeline, session) = (Pipeline::new(registry), Session::new("load"));
        let engine = ReactionEngine::start(&pipeline, &session, &rules);
        let (progress, ending) = (engine.progress(), CancellationToken::new());
        let running = tokio::spawn(engine.run(ending.clone()));
        Self { pipeline, session, progress, running, ending }
    }

    /// Emits `count` events, and waits until the rules have reacted to all of them.
    async fn emit(&self, count: u64, burst: u64, is_paced: bool, text: &str) -> LoadReport {
        let memory = reset_peak_memory();
        let start = Instant::now();
        let each = count / EMITTERS;
        let calls = (0..EMITTERS).map(|emitter| {
            let (pipeline, session) = (self.pipeline.clone(), self.session.clone());
            let arguments = json!({
                "first": emitter * each, "count": each, "burst": burst, "is_paced": is_paced,
                "text": text,
            });
            tokio::spawn(async move {
                let call = Call::new("emit_numbers", arguments.to_string());
                pipeline.call(&session, call).await.result.unwrap();
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        let emitted_in = start.elapsed();
        self.progress.wait_until_processed().await;
        let handled_in = start.elapsed();
        let memory_growth_kib = peak_memory().saturating_sub(memory);
        LoadReport { events: each * EMITTERS, emitted_in, handled_in, memory_growth_kib }
    }

    fn state(&self, key: &str) -> Option<Value> {
        self.session.extension::<ReactionState>().get(key)
    }

    fn counters(&self) -> ReactionCounters {
        self.session.extension::<ReactionCounters>()
    }

    /// Ends the engine; returns its notes.
    async fn finish(self) -> Vec<String> {
        self.ending.cancel();
        self.running.await.unwrap()
    }
}

fn memory_of_process(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// The most memory that this process held since [`reset_peak_memory`], in KiB.
fn peak_memory() -> u64 {
    memory_of_process("VmHWM")
}

/// Lets the peak begin anew; returns what is held now, in KiB.
fn reset_peak_memory() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    memory_of_process("VmRSS")
}

fn load_seconds() -> u64 {
    std::env::var("TOOL_STD_TEST_LOAD_SECONDS").map_or(2, |text| text.parse().unwrap())
}

/// Counts every event, and adds up each hundredth through the pipeline.
const COUNTING: &str = r#"
    [[reaction]]
    name = "count"
    on = "emitted:number"
    when = "event.data.number % 100 == 0 && event.data.text.startsWith('a')"
    max_per_minute = 1000000
    actions = [{ tool = "set_state", key = "sum", value = "${(has(state.sum) ? state.sum : 0) + event.data.number}" }]

    [[reaction]]
    name = "never"
    on = ["emitted:number", "failed"]
    when = "event.type == 'failed'"
    actions = [{ tool = "set_state", key = "failed", value = true }]
"#;

/// Checks that the rules of [`COUNTING`] evaluated `count` events, and lost none.
fn check_counted(loaded: &LoadedSession, count: u64) {
    let counters = loaded.counters();
    let (counted, never) = (counters.of_rule("count"), counters.of_rule("never"));
    assert_eq!((counted.events, never.events), (count, count));
    assert_eq!((counted.matches, counted.actions), (count / 100, count / 100));
    assert_eq!((counted.suppressed, counted.condition_errors), (0, 0), "{counted:?}");
    let hundreds = count / 100;
    assert_eq!(loaded.state("sum"), Some(json!(100 * hundreds * (hundreds - 1) / 2)));
}

async fn react_at_a_steady_rate() {
    let loaded = LoadedSession::start(COUNTING);
    let count = EVENTS_PER_SECOND * load_seconds();
    let burst = EVENTS_PER_SECOND / EMITTERS / u64::from(BURSTS_PER_SECOND);
    let report = loaded.emit(count, burst, true, "a text").await;
    report.print("steady");
    check_counted(&loaded, count);
    assert!(report.memory_growth_kib < MAX_GROWTH_KIB, "{report:?}");
    assert_eq!(loaded.finish().await, [""; 0]);
}

/// The calls that emit wait for the rules, so that the queue stays short.
async fn react_slower_than_events_come() {
    let loaded = LoadedSession::start(COUNTING);
    let count = EVENTS_PER_SECOND * load_seconds();
    let report = loaded.emit(count, 50, false, &"a".repeat(10_000)).await;
    report.print("overload");
    check_counted(&loaded, count);
    assert!(report.memory_growth_kib < MAX_GROWTH_KIB, "{report:?}");
    assert_eq!(loaded.finish().await, [""; 0]);
}

/// Each event of a chain leads to two more, until the chain has a hundred.
async fn break_chains_of_rules() {
    let loaded = LoadedSession::start(
        r#"
        [[reaction]]
        name = "first"
        on = "emitted:number"
        max_per_minute = 1000000
        actions = [{ tool = "emit_event", kind = "step" }]

        [[reaction]]
        name = "again"
        on = "emitted:step"
        max_per_minute = 1000000
        actions = [{ tool = "emit_event", kind = "step" }, { tool = "emit_event", kind = "step" }]

        [[reaction]]
        name = "seldom"
        on = "emitted:step"
        actions = [{ tool = "emit_event", kind = "step" }]
        "#,
    );
    let count = 50 * load_seconds();
    let report = loaded.emit(count, 10, false, "").await;
    report.print("chains");
    let counters = loaded.counters();
    assert_eq!(
        (counters.of_rule("first").events, counters.of_rule("again").events),
        (count, 100 * count)
    );
    let (again, seldom) = (counters.of_rule("again"), counters.of_rule("seldom"));
    assert_eq!((again.actions, again.suppressed, again.failed_actions), (200 * count, 0, 0));
    assert_eq!((seldom.events, seldom.matches), (100 * count, 100 * count));
    assert_eq!(seldom.actions + seldom.suppressed, 100 * count);
    // A minute of the rule may begin before the first event, and end while they come.
    assert!(seldom.actions <= 60 * (2 + report.handled_in.as_secs() / 60), "{seldom:?}");
    // What was emitted has led to an event of the chain, or was counted.
    let emitted = again.actions + seldom.actions + count;
    assert_eq!(counters.broken_chains(), emitted - 100 * count);
    assert!(report.memory_growth_kib < MAX_GROWTH_KIB, "{report:?}");
}

// F163: no event is lost that a rule waits for, memory is bounded, and so are chains. One after the
// other, because each measures the memory of the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_keep_up_with_ten_thousand_events_a_second() {
    react_at_a_steady_rate().await;
    react_slower_than_events_come().await;
    break_chains_of_rules().await;
}
