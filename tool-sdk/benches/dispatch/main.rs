//! What a call costs, from the text of its arguments to the text of its result, beside what
//! the same call costs when written by hand.
//!
//! ```text
//! dispatch                        the tables: nanoseconds and allocations per call, listing
//! dispatch count LANE CASE N      makes N calls and nothing else, for an instruction counter
//! dispatch list                   the table of listing alone
//! dispatch lanes                  what `count` knows, one `LANE CASE N` a line
//! ```
//!
//! `.ci/perf` counts instructions with it; `docs/PERFORMANCE.md` says how to read the figures.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

mod floor;
mod listing;
mod measure;
mod tools;

use std::hint::black_box;
use std::time::Instant;

use tool_sdk::{Call, Output, Pipeline, Registry, Session, tools};

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
                let lane = Lane::ALL.iter().find(|it| it.name() == *lane).expect("a lane");
                let cases = cases();
                let case = cases.iter().find(|it| it.name == *case).expect("a case");
                World::new(&[]).run(*lane, case, calls.parse().unwrap()).await;
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
    args: String,
    /// Calls to count instructions over: few where each takes many.
    counted: u64,
}

fn cases() -> Vec<Case> {
    let case = |name, tool, args: &str| Case {
        name,
        tool,
        args: args.to_owned(),
        counted: if args.len() > 10_000 { 32 } else { 1000 },
    };
    // A line of prose or code has about one quote or newline in 32 characters.
    let escaped = "She said \"wait\" and left by the door; nobody spoke for a long while after.\n\
                   Then it began to rain, and it did not stop before they had all gone home too.\n";
    let free = "She said wait and left by the door; nobody spoke for a long while after this. ";
    vec![
        case("add", "add", r#"{"a": 2, "b": 3}"#),
        case(
            "search",
            "search",
            r#"{"query": "async runtime", "limit": 25, "tags": ["rust", "tokio", "async"], "exact": true}"#,
        ),
        case("search-defaults", "search", r#"{"query": "async runtime"}"#),
        case("echo-1k", "echo", &echo(escaped, 1 << 10)),
        case("echo-64k", "echo", &echo(escaped, 64 << 10)),
        case("echo-64k-free", "echo", &echo(free, 64 << 10)),
        case("bad-args", "add", r#"{"a": "two", "b": 3}"#),
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
    /// The pipeline over this many tools.
    Of(usize),
}

impl Lane {
    const SIZES: [usize; 3] = [10, 100, 1000];
    const ALL: &[Self] = &[Self::Plain, Self::Hand, Self::Dyn, Self::Ours, Self::Heard];
    const SIZED: &[Self] = &[Self::Hand, Self::Of(10), Self::Of(100), Self::Of(1000)];
    /// The lanes whose instructions are counted.
    const COUNTED: &[Self] = &[Self::Hand, Self::Dyn, Self::Ours, Self::Heard];

    fn name(self) -> String {
        match self {
            Self::Plain => "floor-plain".to_owned(),
            Self::Hand => "floor-hand".to_owned(),
            Self::Dyn => "floor-dyn".to_owned(),
            Self::Ours => "ours".to_owned(),
            Self::Heard => "ours-heard".to_owned(),
            Self::Of(tools) => format!("ours-of-{tools}"),
        }
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
    sized: Vec<Pipeline>,
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
            sized: sizes.iter().copied().map(sized).collect(),
        }
    }

    async fn run(&self, lane: Lane, case: &Case, calls: u64) {
        let (tool, args) = (case.tool, case.args.as_str());
        match lane {
            Lane::Plain => {
                for _ in 0..calls {
                    floor::plain(black_box(tool), black_box(args));
                }
            }
            Lane::Hand => {
                for _ in 0..calls {
                    drop(black_box(floor::hand(black_box(tool), black_box(args))));
                }
            }
            Lane::Dyn => {
                for _ in 0..calls {
                    drop(black_box(self.boxed.call(black_box(tool), black_box(args)).await));
                }
            }
            Lane::Ours => self.calls(&self.pipeline, tool, args, calls).await,
            Lane::Heard => {
                let mut events = self.heard.subscribe();
                for _ in 0..calls {
                    self.calls(&self.heard, tool, args, 1).await;
                    while let Some(event) = events.try_recv() {
                        black_box(event);
                    }
                }
            }
            Lane::Of(tools) => {
                let at = Lane::SIZES.iter().position(|size| *size == tools).unwrap();
                self.calls(&self.sized[at], tool, args, calls).await;
            }
        }
    }

    async fn calls(&self, pipeline: &Pipeline, tool: &str, args: &str, calls: u64) {
        for _ in 0..calls {
            let call = Call::new(black_box(tool), black_box(args));
            let outcome = pipeline.call(&self.session, call).await;
            let text = match outcome.result {
                Ok(output) => Ok(Output::into_json(output)),
                Err(error) => Err(error.to_string()),
            };
            drop(black_box(text));
        }
    }
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
    println!("{} ({} bytes)", case.name, case.args.len());
    for (lane, _, least) in turns {
        let before = measure::allocations();
        world.run(lane, case, 100).await;
        let allocations = (measure::allocations() - before) as f64 / 100.0;
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
