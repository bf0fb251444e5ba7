//! Lanes in turns, so that what else the machine does hits all of them.

use std::time::{Duration, Instant};

/// Turns of each lane; the middle one is reported.
const ROUNDS: usize = 15;

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

/// Prints a line per lane: time, ratio to the first one, and what it found.
#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
pub(crate) fn table(title: &str, lanes: &mut [Lane<'_>]) {
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); lanes.len()];
    let mut found = vec![0; lanes.len()];
    for round in 0..=ROUNDS {
        for (at, lane) in lanes.iter_mut().enumerate() {
            let started = Instant::now();
            found[at] = (lane.run)();
            // The first turn fills caches.
            if round > 0 {
                times[at].push(started.elapsed());
            }
        }
    }
    println!("\n{title}");
    let middle = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        (times[times.len() / 2].as_secs_f64() * 1e3, times[0].as_secs_f64() * 1e3)
    };
    let mut yardstick = None;
    for (at, lane) in lanes.iter().enumerate() {
        let (median, least) = middle(&mut times[at]);
        let (base, base_least) = *yardstick.get_or_insert((median, least));
        println!(
            "  {:<24} {median:>9.3} ms {:>6.2}x   least {least:>9.3} ms {:>6.2}x   found {}",
            lane.name,
            median / base,
            least / base_least,
            found[at]
        );
    }
}
