//! What a turn of the agent loop costs, beside a bare HTTP client that sends the same requests.
//!
//! The program starts itself as the mock of a provider, and once for each lane, with one thread:
//!
//! * `bare`: a client that sends the requests of a conversation and reads the events of the answers as JSON
//! * `loop`: the agent loop with a provider's client, which also decides and runs the call
//!
//! A conversation has two turns: the model calls a tool, and answers with a text of 200 words.
//!
//! ```sh
//! taskset --cpu-list 1 cargo bench --package tool-sdk-agent --bench turns
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod bare_client;
mod mock_provider;

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use tool_sdk::agent::{AgentLoop, AgentStop, ApiKey, ProviderClient, Transcript};
use tool_sdk::provider::ModelApi;
use tool_sdk::{CancellationToken, Pipeline, Registry, Session, tool, tools};

/// How many conversations a lane has, after as many as a tenth to warm up.
const CONVERSATIONS: usize = 1000;
/// Each lane runs several times in turn, so that a slow moment hits both; the best counts.
const ROUNDS: usize = 5;
const SYSTEM: &str = "You are good with numbers.";
const QUESTION: &str = "What is 1 + 2?";

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

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let words: Vec<String> = env::args().skip(1).collect();
    match &*words.iter().map(String::as_str).collect::<Vec<_>>() {
        ["mock"] => runtime.block_on(mock_provider::serve()),
        ["bare", url] => {
            let client = bare_client::BareClient::new(url);
            runtime.block_on(measure_turns(async || client.run_conversation().await))
        }
        ["loop", url] => runtime.block_on(measure_loop(url)),
        _ => Ok(compare_lanes()?),
    }
}

async fn measure_loop(url: &str) -> Result<(), Box<dyn Error>> {
    let model = ProviderClient::new(ModelApi::OpenAiChat, "mock")?
        .with_base_url(url)?
        .with_key(ApiKey::value("a key"));
    let pipeline = Pipeline::new(Registry::builder().add(tools![add]).build()?);
    let agent = AgentLoop::new(pipeline, model).with_system(SYSTEM);
    let session = Session::new("bench");
    measure_turns(async || {
        let mut transcript = Transcript::from_user(QUESTION);
        let outcome = agent.run(&session, &mut transcript, &CancellationToken::new()).await;
        match outcome.stop {
            AgentStop::Finished => Ok(()),
            stop => Err(stop.to_string().into()),
        }
    })
    .await
}

/// Runs conversations and prints the processor time of a turn in microseconds.
async fn measure_turns(
    run: impl AsyncFn() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    for _ in 0..CONVERSATIONS / 10 {
        run().await?;
    }
    let before = processor_time()?;
    for _ in 0..CONVERSATIONS {
        run().await?;
    }
    println!("{}", (processor_time()? - before) / (2 * CONVERSATIONS) as f64);
    Ok(())
}

/// The processor time of this thread until now, in microseconds.
fn processor_time() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 =
        stat.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default();
    Ok(nanoseconds / 1e3)
}

fn compare_lanes() -> io::Result<()> {
    let mut mock = start_child(&["mock"])?;
    let url = read_line(&mut mock)?;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (lane, best) in ["bare", "loop"].into_iter().zip(&mut best) {
            let mut child = start_child(&[lane, &url])?;
            let figure = read_line(&mut child)?.parse().map_err(io::Error::other)?;
            child.wait()?;
            *best = best.min(figure);
        }
    }
    mock.kill()?;
    mock.wait()?;
    let [bare, with_loop] = best;
    println!("bare  {bare:>8.2} us of processor for each turn");
    println!("loop  {with_loop:>8.2} us of processor for each turn");
    println!("loop/bare: CPU {:.2}x", with_loop / bare);
    Ok(())
}

fn start_child(words: &[&str]) -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
}

fn read_line(child: &mut Child) -> io::Result<String> {
    let mut line = String::new();
    let stdout = child.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    BufReader::new(stdout).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
