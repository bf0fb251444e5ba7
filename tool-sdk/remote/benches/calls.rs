//! What a call of a remote tool costs beside bare NATS request and reply, and how many calls 1, 2 and 4
//! workers run in a second.
//!
//! The program starts itself as each worker. `NATS_SERVER` names the program of the server:
//!
//! ```sh
//! .ci/remote/run bench
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::env;
use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tool_sdk::permission::{Action, Rule};
use tool_sdk::remote::{
    NatsConfig, PermitSigner, PermitVerifier, Worker, WorkerConfig, Workers, WorkersConfig,
};
use tool_sdk::{Call, CancellationToken, Pipeline, Registry, Session, tool, tools};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const KEY: &str = "a secret of the benchmark, 32 bytes or more";

/// How many requests and calls are timed, after a tenth to warm up.
const CALLS: usize = 2000;

/// How long a cell of the table is measured, and how many calls are in flight.
const CELL: Duration = Duration::from_secs(3);
const IN_FLIGHT: usize = 64;

/// How many calls a worker runs at a time.
const MAX_CALLS: usize = 8;

/// Add two numbers.
#[tool(read, register = false)]
fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> String {
    (a + b).to_string()
}

/// Wait 20 ms.
#[tool(read, register = false)]
async fn wait() -> &'static str {
    tokio::time::sleep(Duration::from_millis(20)).await;
    "waited"
}

/// Compute for 5 ms.
#[tool(read, register = false)]
async fn compute(cx: &tool_sdk::Context) -> std::result::Result<String, tool_sdk::ToolError> {
    cx.run_blocking(|_| {
        let started = Instant::now();
        let mut value = 1_u64;
        while started.elapsed() < Duration::from_millis(5) {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        Ok(value.to_string())
    })
    .await
}

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match &*words.iter().map(String::as_str).collect::<Vec<_>>() {
        ["worker", port] => run_worker(port),
        _ => match env::var_os("NATS_SERVER") {
            Some(program) => compare(&program),
            None => {
                println!("skipped: NATS_SERVER does not name a program of the NATS server");
                Ok(())
            }
        },
    }
}

fn nats(port: &str) -> Result<NatsConfig> {
    Ok(NatsConfig::new(format!("nats://127.0.0.1:{port}"))?)
}

fn run_worker(port: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let pipeline = Pipeline::new(Registry::builder().add(tools![add, compute, wait]).build()?);
        let config = WorkerConfig::new("bench".parse()?, PermitVerifier::from_key(KEY)?)
            .max_calls(MAX_CALLS);
        let worker = Worker::connect(&nats(port)?, config, pipeline, Session::default()).await?;
        println!("serving");
        Ok(worker.serve(CancellationToken::new()).await?)
    })
}

/// A child process that ends with this value.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_server(program: &std::ffi::OsStr) -> Result<(ChildGuard, String)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let child = Command::new(program)
        .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
        .stderr(Stdio::null())
        .spawn()?;
    for _ in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        // The server does not tell when it listens.
        sleep(Duration::from_millis(10));
    }
    Ok((ChildGuard(child), port.to_string()))
}

fn start_worker(port: &str) -> Result<ChildGuard> {
    let mut child =
        Command::new(env::current_exe()?).args(["worker", port]).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    Ok(ChildGuard(child))
}

fn compare(program: &std::ffi::OsStr) -> Result<()> {
    let (_server, port) = start_server(program)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut workers = vec![start_worker(&port)?];
        let pipeline =
            Pipeline::new(Registry::default()).rules([Rule::parse(Action::Allow, "remote__*")?]);
        let config =
            WorkersConfig::new("bench".parse()?, PermitSigner::from_key(KEY)?).trust_definitions();
        let remote = Workers::connect(&nats(&port)?, config).await?;
        remote.attach_to(&pipeline)?;
        wait_for(&remote, 1).await?;
        measure_latency(&port, &pipeline).await?;
        println!("\ncalls in a second; {IN_FLIGHT} in flight, {MAX_CALLS} at a time in a worker");
        println!("  workers   wait 20 ms   compute 5 ms");
        for count in [1, 2, 4] {
            while workers.len() < count {
                workers.push(start_worker(&port)?);
            }
            wait_for(&remote, count).await?;
            let wait = throughput(&pipeline, "remote__bench__wait").await?;
            let compute = throughput(&pipeline, "remote__bench__compute").await?;
            println!("  {count:7}   {wait:10.0}   {compute:12.0}");
        }
        Ok(())
    })
}

async fn wait_for(remote: &Workers, count: usize) -> Result<()> {
    for _ in 0..100 {
        if remote.list().await?.len() == count {
            return Ok(());
        }
        // Nothing tells when a worker that was started serves.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("the workers do not come".into())
}

/// Prints the median time of a call beside that of bare request and reply with the same bytes.
async fn measure_latency(port: &str, pipeline: &Pipeline) -> Result<()> {
    let client = async_nats::connect(format!("127.0.0.1:{port}")).await?;
    let answering = async_nats::connect(format!("127.0.0.1:{port}")).await?;
    let mut requests = answering.subscribe("bare").await?;
    answering.flush().await?;
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            if let Some(reply) = request.reply {
                let _ = answering.publish(reply, request.payload).await;
            }
        }
    });
    // About the size of a message of a call.
    let body = vec![b'x'; 900];
    let session = Session::new("bench");
    let (mut bare, mut calls) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    // One after the other, so that other programs of the machine disturb both alike.
    for round in 0..CALLS + CALLS / 10 {
        let started = Instant::now();
        client.request("bare", body.clone().into()).await?;
        let answered = Instant::now();
        let call = Call::new("remote__bench__add", r#"{"a": 1, "b": 2}"#);
        pipeline.call(&session, call).await.result?;
        // The first ones warm up.
        if round >= CALLS / 10 {
            bare.push(answered - started);
            calls.push(answered.elapsed());
        }
    }
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let (bare, call) = (us(median(bare)), us(median(calls)));
    println!("a request and a call in turn, median");
    println!("  bare request and reply    {bare:7.0} us");
    println!("  call of a remote tool     {call:7.0} us");
    println!("  beside one round trip     {:7.2} x", call / bare);
    println!("  beside two round trips    {:7.2} x", call / bare / 2.0);
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns how many calls a second end well.
async fn throughput(pipeline: &Pipeline, tool: &'static str) -> Result<f64> {
    let done = AtomicUsize::new(0);
    let started = Instant::now();
    let lane = async |lane: usize| {
        // Each lane is a session of its own, so that no loop guard sees the calls of all.
        let session = Session::new(format!("bench-{lane}"));
        while started.elapsed() < CELL {
            let outcome = pipeline.call(&session, Call::new(tool, "{}")).await;
            outcome.result?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<_, Box<dyn Error>>(())
    };
    for ended in join_all((0..IN_FLIGHT).map(lane)).await {
        ended?;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}
