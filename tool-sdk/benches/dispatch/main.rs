//! What a call costs, from the text of its arguments to the text of its result, beside what
//! the same call costs when written by hand.
//!
//! ```text
//! dispatch                        the tables: nanoseconds and allocations per call, listing
//! dispatch count LANE CASE N      makes N calls and nothing else, for an instruction counter
//! dispatch allocations LANE CASE  prints the allocations of a call
//! dispatch list                   the table of listing alone
//! dispatch lanes                  what `count` knows, one `LANE CASE N` a line
//! ```
//!
//! `.ci/perf` compares the tables with the budgets of `docs/PERFORMANCE.md`. `count` is for an
//! instruction counter such as callgrind.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

mod floor;
mod listing;
mod measure;
mod tools;

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tool_sdk::{
    Action, Budget, Call, Hook, HookPriority, LoopGuard, Output, Pipeline, Registry, Rule, Session,
    tools,
};

/// Rounds per case; the least of them is reported.
const ROUNDS: usize = 60;
/// How long one lane's turn in a round takes.
const TURN: f64 = 1e-3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        match args.as_slice() {
            [] => {
                tables().await;
                listing::tables();
            }
            ["lanes"] => lanes(),
            ["count", lane, case, calls] => {
                let calls = calls.parse().unwrap();
                World::new(&[]).run(Lane::named(lane), &Case::named(case), calls).await;
            }
            ["allocations", lane, case] => {
                let world = World::new(&[]);
                println!("{}", allocations(&world, Lane::named(lane), &Case::named(case)).await);
            }
            ["list"] => listing::tables(),
            ["list", lane] => listing::cold(lane),
            _ => panic!("unknown arguments: {args:?}"),
        }
    });
}

/// One kind of call.
struct Case {
    name: &'static str,
    tool: &'static str,
    /// Arguments of the same length, used in turn: who repeats a call is in a loop. A power
    /// of two.
    args: Vec<String>,
    /// Calls to count instructions over: few where each takes many.
    counted: u64,
}

impl Case {
    /// A case whose arguments differ in the digits that stand where `args` has a `#`.
    fn new(name: &'static str, tool: &'static str, args: &str) -> Self {
        let is_long = args.len() > 10_000;
        // As many as the guard against loops remembers, or enough for it to find no loop.
        let variants = if is_long { 8 } else { 64 };
        let filled = |number: u32| {
            let (high, low) = (1 + number / 8, 1 + number % 8);
            args.replacen('#', &low.to_string(), 1).replacen('#', &high.to_string(), 1)
        };
        let counted = if is_long { 32 } else { 1024 };
        Self { name, tool, args: (0..variants).map(filled).collect(), counted }
    }

    fn named(name: &str) -> Self {
        cases().into_iter().find(|case| case.name == name).expect("a case")
    }
}

fn cases() -> Vec<Case> {
    let case = Case::new;
    // A line of prose or code has about one quote or newline in 32 characters.
    let escaped = "#he #aid \"wait\" and left by the door; nobody spoke for a long while after.\n\
                   Then it began to rain, and it did not stop before they had all gone home too.\n";
    let free = "#he #aid wait and left by the door; nobody spoke for a long while after this. ";
    vec![
        case("add", "add", r#"{"a": #, "b": #}"#),
        case(
            "search",
            "search",
            r#"{"query": "async runtime", "limit": ##, "tags": ["rust", "tokio", "async"], "exact": true}"#,
        ),
        case("search-defaults", "search", r#"{"query": "async run##me"}"#),
        case("echo-1k", "echo", &echo(escaped, 1 << 10)),
        case("echo-64k", "echo", &echo(escaped, 64 << 10)),
        case("echo-64k-free", "echo", &echo(free, 64 << 10)),
        case("bad-args", "add", r#"{"a": "t##", "b": 3}"#),
    ]
}

/// Arguments with a text of `length` bytes.
fn echo(part: &str, length: usize) -> String {
    let text: String = part.chars().cycle().take(length).collect();
    format!(r#"{{"text": {}}}"#, serde_json::to_string(&text).unwrap())
}

/// One way to make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// Typed calls without JSON.
    Plain,
    /// `match` and serde: what all else is compared with.
    Hand,
    /// A map of boxed futures.
    Dyn,
    /// The pipeline, with nobody listening.
    Ours,
    /// The pipeline with one subscriber that reads every event.
    Heard,
    /// The pipeline with every stage on that asks nobody and writes nothing down.
    Guarded,
    /// The pipeline over this many tools.
    Of(usize),
}

impl Lane {
    const SIZES: [usize; 3] = [10, 100, 1000];
    const ALL: &[Self] =
        &[Self::Plain, Self::Hand, Self::Dyn, Self::Ours, Self::Heard, Self::Guarded];
    const SIZED: &[Self] = &[Self::Hand, Self::Of(10), Self::Of(100), Self::Of(1000)];
    /// The lanes whose instructions are counted.
    const COUNTED: &[Self] = &[Self::Hand, Self::Dyn, Self::Ours, Self::Heard, Self::Guarded];

    fn name(self) -> String {
        match self {
            Self::Plain => "floor-plain".to_owned(),
            Self::Hand => "floor-hand".to_owned(),
            Self::Dyn => "floor-dyn".to_owned(),
            Self::Ours => "ours".to_owned(),
            Self::Heard => "ours-heard".to_owned(),
            Self::Guarded => "ours-guarded".to_owned(),
            Self::Of(tools) => format!("ours-of-{tools}"),
        }
    }

    fn named(name: &str) -> Self {
        *Self::ALL.iter().find(|lane| lane.name() == name).expect("a lane")
    }
}

fn lanes() {
    for case in cases() {
        for lane in Lane::COUNTED {
            println!("{} {} {}", lane.name(), case.name, case.counted);
        }
    }
}

/// Everything that exists before the first call.
struct World {
    boxed: floor::Registry,
    session: Session,
    pipeline: Pipeline,
    heard: Pipeline,
    guarded: Pipeline,
    sized: Vec<Pipeline>,
    /// How many arguments were handed out.
    turn: Cell<usize>,
}

impl World {
    fn new(sizes: &[usize]) -> Self {
        let tools = || tools![tools::add, tools::search, tools::echo];
        let sized = |size: usize| {
            let others: Vec<_> = (tools().len()..size).map(listing::dynamic).collect();
            Pipeline::new(Registry::builder().add(tools()).add(others).build().unwrap())
        };
        let pipeline = || Pipeline::new(Registry::builder().add(tools()).build().unwrap());
        Self {
            boxed: floor::Registry::new(),
            session: Session::default(),
            pipeline: pipeline(),
            heard: pipeline(),
            guarded: guarded(pipeline()),
            turn: Cell::default(),
            sized: sizes.iter().copied().map(sized).collect(),
        }
    }

    /// The arguments of the next call.
    fn args<'c>(&self, case: &'c Case) -> &'c str {
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        &case.args[turn & (case.args.len() - 1)]
    }

    async fn run(&self, lane: Lane, case: &Case, calls: u64) {
        let tool = case.tool;
        match lane {
            Lane::Plain => {
                for _ in 0..calls {
                    floor::plain(black_box(tool), black_box(self.args(case)));
                }
            }
            Lane::Hand => {
                for _ in 0..calls {
                    let args = black_box(self.args(case));
                    drop(black_box(floor::hand(black_box(tool), args)));
                }
            }
            Lane::Dyn => {
                for _ in 0..calls {
                    let args = black_box(self.args(case));
                    drop(black_box(self.boxed.call(black_box(tool), args).await));
                }
            }
            Lane::Ours => self.calls(&self.pipeline, case, calls).await,
            Lane::Guarded => self.calls(&self.guarded, case, calls).await,
            Lane::Heard => {
                let mut events = self.heard.subscribe();
                for _ in 0..calls {
                    self.calls(&self.heard, case, 1).await;
                    while let Some(event) = events.try_recv() {
                        black_box(black_box(&event).kind.is_terminal());
                    }
                }
            }
            Lane::Of(tools) => {
                let at = Lane::SIZES.iter().position(|size| *size == tools).unwrap();
                self.calls(&self.sized[at], case, calls).await;
            }
        }
    }

    async fn calls(&self, pipeline: &Pipeline, case: &Case, calls: u64) {
        for _ in 0..calls {
            let call = Call::new(black_box(case.tool), black_box(self.args(case)));
            let outcome = pipeline.call(&self.session, call).await;
            let text = match outcome.result {
                Ok(output) => Ok(Output::into_json(output)),
                Err(error) => Err(error.to_string()),
            };
            drop(black_box(text));
        }
    }
}

/// With every stage on that asks nobody and writes nothing down.
fn guarded(pipeline: Pipeline) -> Pipeline {
    struct Silent;
    impl Hook for Silent {}
    pipeline
        .timeout(Duration::from_secs(5))
        .budget(Budget::default())
        .output_dir(std::env::temp_dir())
        .rules([Rule::new(Action::Allow, "*", "*"), Rule::new(Action::Deny, "write_*", "*")])
        .hook("*", HookPriority::DEFAULT, Silent)
        .loop_guard(LoopGuard::default())
}

/// The allocations of a call, once everything that is kept has its room.
async fn allocations(world: &World, lane: Lane, case: &Case) -> f64 {
    const CALLS: u64 = 128;
    world.run(lane, case, CALLS).await;
    let before = measure::allocations();
    world.run(lane, case, CALLS).await;
    (measure::allocations() - before) as f64 / CALLS as f64
}

async fn tables() {
    let world = World::new(&Lane::SIZES);
    println!("per call: least ns, ratio to floor-hand, allocations\n");
    for case in cases() {
        table(&world, &case, Lane::ALL).await;
        if case.name == "add" {
            table(&world, &case, Lane::SIZED).await;
        }
    }
}

/// Measures the lanes in turns, so that whatever else happens hits all of them.
async fn table(world: &World, case: &Case, lanes: &[Lane]) {
    let mut turns = Vec::new();
    for &lane in lanes {
        world.run(lane, case, 3).await;
        let once = seconds(world, lane, case, 10).await / 10.0;
        turns.push((lane, (TURN / once).max(1.0) as u64, f64::INFINITY));
    }
    for _ in 0..ROUNDS {
        for (lane, calls, least) in &mut turns {
            let time = seconds(world, *lane, case, *calls).await / *calls as f64;
            *least = least.min(time);
        }
    }
    let hand = turns.iter().find(|(lane, ..)| *lane == Lane::Hand).unwrap().2;
    println!("{} ({} bytes)", case.name, case.args[0].len());
    for (lane, _, least) in turns {
        let allocations = allocations(world, lane, case).await;
        println!(
            "  {:14} {:>10.1} ns {:>7.2}x {:>6.1} allocations",
            lane.name(),
            least * 1e9,
            least / hand,
            allocations
        );
    }
}

async fn seconds(world: &World, lane: Lane, case: &Case, calls: u64) -> f64 {
    let start = Instant::now();
    world.run(lane, case, calls).await;
    start.elapsed().as_secs_f64()
}
