//! What a call over standard input and output costs, beside the same server written by hand.
//!
//! The program starts itself once for each lane and talks to it over two pipes:
//!
//! * `hand`: a blocking loop that knows its one tool, with nothing around it: the floor
//! * `sdk`: the server as it is
//! * `rmcp`: the same with every message going through rmcp
//!
//! ```sh
//! taskset --cpu-list 1 cargo bench --package tool-sdk --bench mcp --all-features
//! ```
//!
//! On one processor the figures hold both sides and two switches between them.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod client;
mod hand;
mod sdk;

use std::env;
use std::error::Error;
use std::io;

use client::Figures;

const LANES: [&str; 3] = ["hand", "sdk", "rmcp"];

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1).as_deref() {
        Some("hand") => Ok(hand::serve()?),
        Some("sdk") => sdk::serve(true),
        Some("rmcp") => sdk::serve(false),
        _ => Ok(compare()?),
    }
}

/// Each lane several times in turn, so that a slow moment of the machine hits all of them;
/// the best round of each counts.
fn compare() -> io::Result<()> {
    const ROUNDS: usize = 5;
    let mut best: [Option<Figures>; LANES.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (lane, best) in LANES.iter().zip(&mut best) {
            let figures = client::measure(lane)?;
            *best = Some(match best.take() {
                Some(known) => known.best(figures),
                None => figures,
            });
        }
    }
    println!(
        "{:<6} {:>10} {:>12} {:>10} {:>12} {:>9} {:>9}",
        "lane", "alone us", "64 deep /s", "CPU us", "CPU us deep", "start ms", "RSS MiB"
    );
    for (lane, figures) in LANES.iter().zip(best.iter().flatten()) {
        println!("{lane:<6} {figures}");
    }
    if let [Some(hand), Some(sdk), _] = &best {
        println!("sdk/hand: {}", sdk.beside(hand));
    }
    Ok(())
}
