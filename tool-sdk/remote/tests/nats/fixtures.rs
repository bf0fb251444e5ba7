//! A NATS server, workers in this process and in others, and a host.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tool_sdk_core::{
    Action, Approver, CancellationToken, Pipeline, Registry, Rule, Session, Toolset, tool, tools,
};
use tool_sdk_remote::{
    ConnectionStatus, NatsConfig, PermitSigner, PermitVerifier, Worker, WorkerConfig, Workers,
    WorkersConfig,
};

use crate::tools::worker_tools;

/// The secret that hosts and workers of the tests share.
pub(crate) const KEY: &str = "a secret of the tests, 32 bytes or more";

/// The variable that names the program of the server.
const NATS_SERVER: &str = "NATS_SERVER";

/// The variable with which this program is a worker: the port of the server.
const WORKER_PORT: &str = "REMOTE_TEST_WORKER_PORT";

/// The variable that sets the number of rounds of each fault.
const ROUNDS: &str = "REMOTE_FAULT_ROUNDS";

/// How often the heartbeat of a worker comes here.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// After what silence a worker is lost here: so long that a busy machine loses no worker that lives.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(2);

/// A limit of what must happen that only a hanging test reaches.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

/// How often each fault happens.
pub(crate) fn rounds() -> usize {
    std::env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2)
}

/// How often the tool ran that writes to this file.
pub(crate) fn runs_in(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

/// A running NATS server with JetStream.
pub(crate) struct NatsServer {
    child: Child,
    port: u16,
    program: PathBuf,
    folder: tempfile::TempDir,
    arguments: &'static [&'static str],
}

impl NatsServer {
    /// Starts a server, or prints why the test is skipped.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// Starts a server with these arguments.
    pub(crate) async fn start_with(arguments: &'static [&'static str]) -> Option<Self> {
        let Some(program) = std::env::var_os(NATS_SERVER) else {
            eprintln!("skipped: {NATS_SERVER} does not name a program of the NATS server");
            return None;
        };
        let program = PathBuf::from(program);
        let folder = tempfile::tempdir().unwrap();
        let (child, port) = start_server(&program, None, folder.path(), arguments).await;
        Some(Self { child, port, program, folder, arguments })
    }

    pub(crate) fn config(&self) -> NatsConfig {
        NatsConfig::new(format!("nats://127.0.0.1:{}", self.port)).unwrap()
    }

    /// Ends the server at once.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts it again at the same port.
    pub(crate) async fn restart(&mut self) {
        let Self { program, port, folder, arguments, .. } = self;
        (self.child, _) = start_server(program, Some(*port), folder.path(), arguments).await;
    }

    /// Connects to the server without the crate under test.
    pub(crate) async fn client(&self) -> async_nats::Client {
        async_nats::connect(format!("127.0.0.1:{}", self.port)).await.unwrap()
    }

    /// Starts a worker in a process of its own.
    pub(crate) async fn spawn_worker(&self) -> WorkerProcess {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["fixtures::worker_process", "--exact", "--ignored", "--nocapture"])
            .env(WORKER_PORT, self.port.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with("serving as ") {
                // The pipe is read on, so that the worker can write.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return WorkerProcess { child };
            }
        }
        panic!("the worker did not start");
    }
}

/// Starts a server at this port, or at one that it chooses; returns it with its port once it listens.
async fn start_server(
    program: &Path,
    port: Option<u16>,
    folder: &Path,
    arguments: &[&str],
) -> (Child, u16) {
    let port = port.map_or("-1".to_owned(), |port| port.to_string());
    let child = Command::new(program)
        .args(["--addr", "127.0.0.1", "--port", &port, "--jetstream", "--store_dir"])
        .arg(folder)
        .arg("--ports_file_dir")
        .arg(folder)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let name = program.file_name().unwrap().to_str().unwrap();
    let file = folder.join(format!("{name}_{}.ports", child.id().unwrap()));
    let start = Instant::now();
    loop {
        // It writes the file once it listens, perhaps not at once.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let port = text.strip_suffix("\"]}").and_then(|rest| rest.rsplit(':').next());
        if let Some(port) = port.and_then(|port| port.parse().ok()) {
            return (child, port);
        }
        assert!(start.elapsed() < HANGS, "the NATS server does not listen: {text}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A worker in a process of its own.
pub(crate) struct WorkerProcess {
    child: Child,
}

impl WorkerProcess {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Stops the process; it goes on with [`resume`](Self::resume).
    pub(crate) async fn pause(&self) {
        self.signal("-STOP").await;
    }

    pub(crate) async fn resume(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
    }
}

/// The main function of a worker process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is started by other tests"]
async fn worker_process() {
    let port = std::env::var(WORKER_PORT).unwrap();
    let server = NatsConfig::new(format!("nats://127.0.0.1:{port}")).unwrap();
    let worker = connect_worker(&server, worker_config(), worker_pipeline([])).await;
    println!("\nserving as {}", worker.id());
    worker.serve(CancellationToken::new()).await.unwrap();
}

pub(crate) fn worker_config() -> WorkerConfig {
    let verifier = PermitVerifier::from_key(KEY).unwrap();
    WorkerConfig::new("demo".parse().unwrap(), verifier)
        .heartbeat(HEARTBEAT)
        .drain_timeout(Duration::from_secs(5))
}

/// A pipeline with the tools of the workers, and these rules that deny.
pub(crate) fn worker_pipeline<const N: usize>(denied: [&str; N]) -> Pipeline {
    let registry = Registry::builder().add(worker_tools()).build().unwrap();
    Pipeline::new(registry).rules(denied.map(|rule| Rule::parse(Action::Deny, rule).unwrap()))
}

pub(crate) async fn connect_worker(
    server: &NatsConfig,
    config: WorkerConfig,
    pipeline: Pipeline,
) -> Worker {
    Worker::connect(server, config, pipeline, Session::new("worker")).await.unwrap()
}

/// A worker in this process.
pub(crate) struct LocalWorker {
    pub(crate) id: String,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl LocalWorker {
    pub(crate) async fn start(server: &NatsServer) -> Self {
        Self::start_with(server, worker_config(), worker_pipeline([])).await
    }

    pub(crate) async fn start_with(
        server: &NatsServer,
        config: WorkerConfig,
        pipeline: Pipeline,
    ) -> Self {
        Self::serve(connect_worker(&server.config(), config, pipeline).await)
    }

    pub(crate) fn serve(worker: Worker) -> Self {
        let (id, shutdown) = (worker.id().to_owned(), CancellationToken::new());
        let until = shutdown.clone();
        let serving = tokio::spawn(async move { worker.serve(until).await.unwrap() });
        Self { id, shutdown, serving }
    }

    /// Ends the worker after its running calls.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.unwrap();
    }

    /// Waits until the worker has ended.
    pub(crate) async fn ended(self) {
        self.serving.await.unwrap();
    }
}

/// A host with a tool of its own, and the tools of the workers.
pub(crate) struct TestHost {
    pub(crate) pipeline: Pipeline,
    pub(crate) workers: Workers,
    pub(crate) session: Session,
}

/// Say hello, on the host.
#[tool(read)]
fn hello() -> &'static str {
    "hello"
}

pub(crate) fn workers_config() -> WorkersConfig {
    let signer = PermitSigner::from_key(KEY).unwrap();
    WorkersConfig::new("demo".parse().unwrap(), signer)
        .lost_after(LOST_AFTER)
        .prepare_timeout(4 * LOST_AFTER)
        .trust_definitions()
}

impl TestHost {
    /// A host that allows every remote tool.
    pub(crate) async fn start(server: &NatsServer) -> Self {
        Self::start_with(server, workers_config(), ["remote__*"]).await
    }

    pub(crate) async fn start_with<const N: usize>(
        server: &NatsServer,
        config: WorkersConfig,
        allowed: [&str; N],
    ) -> Self {
        let rules = allowed.map(|rule| Rule::parse(Action::Allow, rule).unwrap());
        let workers = Workers::connect(&server.config(), config).await.unwrap();
        Self::attach(workers, Self::own_pipeline().rules(rules))
    }

    /// A host with these rules, which asks this approver.
    pub(crate) async fn start_with_rules<const N: usize>(
        server: &NatsServer,
        rules: [Rule; N],
        approver: Arc<dyn Approver>,
    ) -> Self {
        let pipeline = Self::own_pipeline().rules(rules).shared_approver(approver);
        let workers = Workers::connect(&server.config(), workers_config()).await.unwrap();
        Self::attach(workers, pipeline)
    }

    fn own_pipeline() -> Pipeline {
        let registry = Registry::builder().add(tools![hello]).build().unwrap();
        Pipeline::new(Toolset::new(registry))
    }

    /// A host with the tools of a pipeline and those of workers.
    pub(crate) fn attach(workers: Workers, pipeline: Pipeline) -> Self {
        workers.attach_to(&pipeline).unwrap();
        Self { pipeline, workers, session: Session::new("host").with_user("ada") }
    }

    /// Waits until this many workers are known.
    pub(crate) async fn wait_for_workers(&self, count: usize) {
        let start = Instant::now();
        let mut connection = self.workers.connection();
        loop {
            connection.wait_for(|status| *status == ConnectionStatus::Connected).await.unwrap();
            // The connection may have been lost since.
            let Ok(known) = self.workers.list().await else { continue };
            if known.len() == count && known.iter().all(|worker| worker.answers) {
                return;
            }
            assert!(start.elapsed() < HANGS, "there are {} of {count} workers", known.len());
        }
    }

    pub(crate) fn tool_names(&self) -> Vec<String> {
        let view = self.pipeline.toolset().view();
        view.definitions().map(|definition| definition.name.to_string()).collect()
    }
}
