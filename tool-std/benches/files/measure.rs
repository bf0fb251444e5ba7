//! Lanes in turns, so that what else the machine does hits all of them.

use std::time::{Duration, Instant};

/// Turns of each lane; the middle one is reported.
pub(crate) const ROUNDS: usize = 15;

/// One way to do a piece of work; gives how much it found.
pub(crate) struct Lane<'a> {
    pub(crate) name: &'static str,
    pub(crate) run: Box<dyn FnMut() -> usize + 'a>,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(name: &'static str, run: impl FnMut() -> usize + 'a) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// What a lane took.
#[derive(Default)]
struct Taken {
    wall: Vec<Duration>,
    /// Ticks of the processor, programs that were started included.
    ticks: u64,
    found: usize,
}

/// Prints a line per lane: the middle of its times, processor time, and what it found; each
/// beside the first lane's.
#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
pub(crate) fn table(title: &str, lanes: &mut [Lane<'_>]) {
    let mut taken: Vec<Taken> = lanes.iter().map(|_| Taken::default()).collect();
    for round in 0..=ROUNDS {
        for (lane, taken) in lanes.iter_mut().zip(&mut taken) {
            let (ticks, started) = (processor_ticks(), Instant::now());
            taken.found = (lane.run)();
            let wall = started.elapsed();
            // The first turn fills caches.
            if round > 0 {
                taken.wall.push(wall);
                taken.ticks += processor_ticks() - ticks;
            }
        }
    }
    println!("\n{title}");
    println!("  {:<24} {:>12} {:>7} {:>15} {:>7} {:>9}", "", "ms", "", "processor ms", "", "found");
    let mut first = None;
    for (lane, mut taken) in lanes.iter().zip(taken) {
        taken.wall.sort_unstable();
        let wall = taken.wall[ROUNDS / 2].as_secs_f64() * 1e3;
        let processor = taken.ticks as f64 * MS_PER_TICK / ROUNDS as f64;
        let (wall_first, processor_first) = *first.get_or_insert((wall, processor));
        println!(
            "  {:<24} {wall:>12.3} {:>7} {processor:>15.1} {:>7} {:>9}",
            lane.name,
            ratio(wall, wall_first),
            ratio(processor, processor_first),
            taken.found
        );
    }
}

/// Nothing where the first lane took too little to be measured.
fn ratio(of: f64, first: f64) -> String {
    if first > 0.0 { format!("{:.2}x", of / first) } else { "-".to_owned() }
}

/// How long a tick is, on every Linux that is not built for something special.
const MS_PER_TICK: f64 = 10.0;

/// What this program and those that it waited for took of the processors; nothing where the
/// system does not say.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name stands in brackets and may hold anything; the times are the 12th to 15th
    // field behind it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}
