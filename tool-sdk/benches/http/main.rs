//! What a call over REST costs, beside a bare axum handler that does the same JSON work.
//!
//! The program starts itself once for each lane, with one thread, and talks to it:
//!
//! * `axum`: a route that reads the arguments and writes the same result, which asks for no token
//! * `rest`: the server as it is
//!
//! ```sh
//! taskset --cpu-list 1 cargo bench --package tool-sdk --bench http --all-features
//! ```
//!
//! On one processor the figures hold both sides and two switches between them.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod client;
#[path = "../mcp/figures.rs"]
#[expect(dead_code, reason = "the costs of a start are those of another benchmark")]
mod figures;
#[path = "../mcp/server_process.rs"]
mod server_process;

use std::env;
use std::error::Error;
use std::io;

use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tool_sdk::http::{self, HttpOptions};
use tool_sdk::{Pipeline, Registry, tool, tools};

use figures::Figures;

const LANES: [&str; 2] = ["axum", "rest"];
const ROUNDS: usize = 5;

/// Add two numbers.
#[tool(read, register = false)]
fn add(
    /// One number.
    a: i64,
    /// The other one.
    b: i64,
) -> String {
    (a + b).to_string()
}

#[derive(Deserialize)]
struct AddArguments {
    a: i64,
    b: i64,
}

#[derive(Serialize)]
struct AddResult {
    call: String,
    text: String,
}

async fn add_by_hand(Json(arguments): Json<AddArguments>) -> Json<AddResult> {
    let call = "call-0123456789abcdef0123456789abcdef".to_owned();
    Json(AddResult { call, text: (arguments.a + arguments.b).to_string() })
}

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1).as_deref() {
        Some("axum") => serve(true),
        Some("rest") => serve(false),
        _ => Ok(compare()?),
    }
}

/// Serves a lane with one thread, and says where.
fn serve(by_hand: bool) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        if by_hand {
            let app = Router::new().route("/v1/tools/add", post(add_by_hand));
            return Ok(axum::serve(listener, app).await?);
        }
        let pipeline = Pipeline::new(Registry::builder().add(tools![add]).build()?);
        let options = HttpOptions::new(client::TOKEN.parse()?);
        Ok(http::serve(pipeline, listener, options).await?)
    })
}

/// Each lane several times in turn, so that a slow moment of the machine hits both; the best round
/// of each counts.
fn compare() -> io::Result<()> {
    println!(
        "{:<9} {:>10} {:>8} {:>12} {:>10} {:>12} {:>9}",
        "lane", "alone us", "p99 us", "64 deep /s", "CPU us", "CPU us deep", "start ms"
    );
    let mut best: [Option<Figures>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (lane, best) in LANES.iter().zip(&mut best) {
            let figures = client::measure(lane)?;
            *best = Some(match best.take() {
                Some(known) => known.best(figures),
                None => figures,
            });
        }
    }
    for (lane, figures) in LANES.iter().zip(best.iter().flatten()) {
        println!("{lane:<9} {figures}");
    }
    if let [Some(axum), Some(rest)] = &best {
        println!("rest/axum: {}", rest.beside(axum));
    }
    Ok(())
}
