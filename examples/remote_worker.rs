//! A tool on another machine: a worker serves it over NATS, and a host has it beside its own.
//!
//! Start a server (`nats-server`), then run the example; `NATS_URL` is its address. Here worker and
//! host are one program; usually they are two, on two machines.
//!
//! ```console
//! $ NATS_URL=nats://127.0.0.1:4222 cargo run -p tool-examples --example remote_worker
//! ```

use std::error::Error;
use std::time::Duration;

use tool_sdk::permission::{Action, Rule};
use tool_sdk::remote::{
    NatsConfig, PermitSigner, PermitVerifier, Worker, WorkerConfig, Workers, WorkersConfig,
};
use tool_sdk::{Call, CancellationToken, Pipeline, Registry, Session, tool, tools};

/// Say where the tool runs.
#[tool(read, register = false)]
fn whereabouts() -> String {
    format!("in the process {}", std::process::id())
}

/// The key that hosts and workers share; programs read it from a file.
const KEY: &str = "an example of a secret, 32 bytes or more";

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Ok(url) = std::env::var("NATS_URL") else {
        println!("start a NATS server, and set NATS_URL to its address");
        return Ok(());
    };
    println!("{}", call_through_worker(&url).await?);
    Ok(())
}

async fn call_through_worker(url: &str) -> Result<String, Box<dyn Error>> {
    let server = NatsConfig::new(url)?;

    // The worker: a pipeline that serves.
    let tools = Registry::builder().add(tools![whereabouts]).build()?;
    let config = WorkerConfig::new("example".parse()?, PermitVerifier::from_key(KEY)?);
    let worker = Worker::connect(&server, config, Pipeline::new(tools), Session::default()).await?;
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(worker.serve(shutdown.clone()));

    // The host: its pipeline has the tools of every worker. A tool that it never saw asks, so a
    // program without a user allows it.
    let host = Pipeline::new(Registry::default())
        .rules([Rule::parse(Action::Allow, "remote_definition(example/whereabouts)")?]);
    let config = WorkersConfig::new("example".parse()?, PermitSigner::from_key(KEY)?);
    let workers = Workers::connect(&server, config).await?;
    workers.attach_to(&host)?;
    wait_for_worker(&workers).await?;

    let call = Call::new("remote__example__whereabouts", "{}");
    let text = host.call(&Session::default(), call).await.text().into_owned();
    shutdown.cancel();
    serving.await??;
    Ok(text)
}

/// Waits until a worker has announced itself, for ten seconds at most.
async fn wait_for_worker(workers: &Workers) -> Result<(), Box<dyn Error>> {
    let found = async {
        while workers.list().await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<(), Box<dyn Error>>(())
    };
    let found = tokio::time::timeout(Duration::from_secs(10), found).await;
    found.map_err(|_| "no worker of the namespace `example` answered within 10 s")?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_worker_answers() {
        // Without a server there is nothing to call.
        let Ok(url) = std::env::var("NATS_URL") else { return };
        let text = call_through_worker(&url).await.unwrap();
        assert_eq!(text, whereabouts());
    }
}
