//! What a call by a peer costs, beside the same server written by hand.
//!
//! The program starts itself once for each lane and talks to it, over two pipes
//!
//! * `hand`: a blocking loop that knows its one tool, with nothing around it: the floor
//! * `sdk`: the server as it is
//!
//! or over HTTP, where all servers have one thread
//!
//! * `web-hand`: hyper and a function that knows its one tool, which asks nobody for a token
//! * `web`: the server as it is, in a session
//!
//! and it lists a thousand tools over two pipes: by hand with what must be said of a tool, and
//! by hand with the very bytes that the server writes.
//!
//! ```sh
//! taskset --cpu-list 1 cargo bench --package tool-sdk --bench mcp --all-features
//! taskset --cpu-list 1 cargo bench ... -- lists             # only the lists
//! taskset --cpu-list 1 cargo bench ... -- program PROGRAM   # another program beside the floor
//! ```
//!
//! On one processor the figures hold both sides and two switches between them.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod client;
mod crowd;
mod figures;
mod hand;
mod sdk;
mod server_process;
mod web;

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::process::Command;

use tokio::net::TcpListener;
use tool_sdk::mcp::{self, HttpOptions, Server};

use figures::Figures;

const PIPES: [&str; 2] = ["hand", "sdk"];
const WEB: [&str; 2] = ["web-hand", "web"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    match args.next().as_deref() {
        Some("hand") => Ok(hand::serve(&hand::list(1))?),
        Some("sdk") => sdk::serve(&sdk::server()?),
        Some("hand-crowd") => Ok(hand::serve(&hand::list(crowd::TOOLS))?),
        Some("hand-same") => Ok(hand::serve(&crowd::list()?)?),
        Some("sdk-crowd") => sdk::serve(&crowd::server()?),
        Some("web-hand") => serve_http(None),
        Some("web") => serve_http(Some(sdk::server()?)),
        Some("lists") => Ok(lists()?),
        Some("program") => Ok(program(&args.next().unwrap_or_default())?),
        _ => Ok(compare()?),
    }
}

/// Serves over HTTP, and says where.
fn serve_http(server: Option<Server>) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        match server {
            Some(server) => {
                mcp::serve_http(&server, listener, HttpOptions::new(web::TOKEN.parse()?)).await?
            }
            None => hand::serve_http(listener).await?,
        }
        Ok(())
    })
}

fn compare() -> io::Result<()> {
    println!(
        "{:<9} {:>10} {:>8} {:>12} {:>10} {:>12} {:>9}",
        "lane", "alone us", "p99 us", "64 deep /s", "CPU us", "CPU us deep", "start ms"
    );
    lanes(PIPES, client::measure)?;
    lanes(WEB, web::measure)?;
    lists()
}

/// A list of many tools, beside the floor and beside the same bytes by hand.
fn lists() -> io::Result<()> {
    let (sdk, tools) = client::list("sdk-crowd")?;
    println!("a list of {tools} tools: sdk {sdk:.0} us");
    for lane in ["hand-crowd", "hand-same"] {
        let (hand, _) = client::list(lane)?;
        println!("{lane} {hand:.0} us, {:.2}x", sdk / hand);
    }
    Ok(())
}

/// Each lane several times in turn, so that a slow moment of the machine hits all of them;
/// the best round of each counts.
fn lanes(names: [&str; 2], measure: fn(&str) -> io::Result<Figures>) -> io::Result<()> {
    const ROUNDS: usize = 5;
    let mut best: [Option<Figures>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (lane, best) in names.iter().zip(&mut best) {
            let figures = measure(lane)?;
            *best = Some(match best.take() {
                Some(known) => known.best(figures),
                None => figures,
            });
        }
    }
    for (lane, figures) in names.iter().zip(best.iter().flatten()) {
        println!("{lane:<9} {figures}");
    }
    if let [Some(hand), Some(sdk)] = &best {
        println!("{}/{}: {}", names[1], names[0], sdk.beside(hand));
    }
    Ok(())
}

/// The size, the start and the memory of another server that speaks over two pipes.
fn program(path: &str) -> io::Result<()> {
    let floor = client::start(|| server_process::own("hand"))?;
    let costs = client::start(|| Ok(Command::new(path)))?;
    println!("size {:.2} MB", fs::metadata(path)?.len() as f64 / 1e6);
    println!("start {:.2} ms, {:.2}x by hand", costs.start, costs.start / floor.start);
    println!("resident {:.1} MiB, by hand {:.1} MiB", costs.memory, floor.memory);
    Ok(())
}
