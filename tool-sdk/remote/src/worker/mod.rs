//! A worker: serves the tools of its program to the hosts of a namespace.
//!
//! [`offer`] is what the services API lists, [`calls`] prepares and runs, and [`questions`] forwards what
//! running tools ask.
//!
//! **Invariant:** nothing runs before a permit for exactly this call was accepted.

mod calls;
mod offer;
mod questions;
mod sessions;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::Client;
use async_nats::service::ServiceExt as _;
use async_nats::service::endpoint::Endpoint;
use async_nats::service::{Request, Service};
use bytes::Bytes;
use futures_util::stream::{BoxStream, SelectAll};
use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tool_sdk_core::{Pipeline, Session};

use self::calls::SEND_TIMEOUT;
use self::offer::ToolOffer;
use self::questions::OpenQuestions;
use self::sessions::WorkerSessions;
use crate::connection::NatsConfig;
use crate::error::RemoteError;
use crate::namespace::Namespace;
use crate::nonces::{CancelledNonces, UsedNonces};
use crate::payload::MessageCodec;
use crate::permit::{PermitVerifier, random_id};
use crate::protocol::{
    ANSWER, CANCEL, DRAIN, PREPARE, PROGRAM, RUN, TOOL_COUNT, WORKER, changed_subject,
    service_name, short_hash, tool_subject, worker_subject,
};

/// How many calls a worker prepares at the same time.
const MAX_PREPARING: usize = 64;

/// How many messages are read at a time.
const MAX_READING: usize = 4;

/// How long it may take until the server sends no more requests to a worker that ends.
const UNSUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The settings of a worker.
#[derive(Debug)]
#[non_exhaustive]
pub struct WorkerConfig {
    namespace: Namespace,
    verifier: PermitVerifier,
    max_calls: usize,
    heartbeat: Duration,
    drain_timeout: Duration,
    program: String,
}

impl WorkerConfig {
    /// Returns the settings of a worker of `namespace` that accepts the permits of `verifier`: 16
    /// calls at a time, a heartbeat each second, and 30 s to end running calls.
    #[must_use]
    pub fn new(namespace: Namespace, verifier: PermitVerifier) -> Self {
        Self {
            namespace,
            verifier,
            max_calls: 16,
            heartbeat: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(30),
            program: "worker".to_owned(),
        }
    }

    /// Sets how many calls run at a time; further ones go to other workers.
    #[must_use]
    pub fn max_calls(mut self, calls: usize) -> Self {
        self.max_calls = calls.clamp(1, 4096);
        self
    }

    /// Sets how often the worker reports that a call still runs.
    #[must_use]
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval.max(Duration::from_millis(10));
        self
    }

    /// Sets how long running calls may go on when the worker ends.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Sets the name of the program, for people.
    #[must_use]
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.program = name.into();
        self
    }
}

/// A worker: the tools of a pipeline, for the hosts of a namespace.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::remote::{NatsConfig, PermitVerifier, Worker, WorkerConfig};
/// use tool_sdk::{CancellationToken, Pipeline, Registry, Session};
///
/// # async fn example(key: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let pipeline = Pipeline::new(Registry::default());
/// let config = WorkerConfig::new("demo".parse()?, PermitVerifier::from_key(key)?);
/// let server = NatsConfig::new("nats://127.0.0.1:4222")?;
/// let worker = Worker::connect(&server, config, pipeline, Session::default()).await?;
/// worker.serve(CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Worker(Arc<WorkerState>);

/// What the tasks of a worker share.
#[derive(Debug)]
struct WorkerState {
    id: String,
    config: WorkerConfig,
    pipeline: Pipeline,
    sessions: WorkerSessions,
    payloads: MessageCodec,
    nonces: UsedNonces,
    slots: Semaphore,
    preparing: Semaphore,
    /// The tools that are offered now.
    offer: Mutex<Arc<ToolOffer>>,
    running: Mutex<RunTable>,
    questions: OpenQuestions,
    reading: Semaphore,
    tasks: TaskTracker,
    drain: CancellationToken,
    counters: WorkerCounters,
}

/// The calls that run, and those that were cancelled before they came.
#[derive(Debug, Default)]
struct RunTable {
    /// How running calls are cancelled, by the nonces of their permits.
    calls: HashMap<String, CancellationToken>,
    cancelled: CancelledNonces,
}

/// What a worker has done.
#[derive(Debug, Default)]
struct WorkerCounters {
    /// Calls whose tool failed.
    failed: AtomicU64,
    /// Requests that were refused because the worker was busy.
    busy: AtomicU64,
    /// Requests that were refused for another reason.
    refused: AtomicU64,
}

/// A request, and the endpoint that received it.
type IncomingRequests = SelectAll<BoxStream<'static, (EndpointKind, Request)>>;

#[derive(Clone, Copy, Debug)]
enum EndpointKind {
    Prepare,
    Run,
    Drain,
}

impl Worker {
    /// Connects to the server. The calls of a host are made in sessions like `session`, which
    /// provides the services of the tools.
    ///
    /// # Errors
    ///
    /// Fails when the server cannot be reached.
    pub async fn connect(
        server: &NatsConfig,
        config: WorkerConfig,
        pipeline: Pipeline,
        session: Session,
    ) -> Result<Self, RemoteError> {
        let client = server.connect(&client_name(&config)).await?;
        Ok(Self::with_client(client, config, pipeline, session))
    }

    /// Like [`connect`](Self::connect), but tries again, with pauses of at most 2 s, for as long as the
    /// server cannot be reached. `on_failure` hears why, after each attempt.
    ///
    /// # Errors
    ///
    /// Fails when the server refuses the connection, or when the configuration is wrong.
    pub async fn connect_with_retry(
        server: &NatsConfig,
        config: WorkerConfig,
        pipeline: Pipeline,
        session: Session,
        mut on_failure: impl FnMut(&RemoteError),
    ) -> Result<Self, RemoteError> {
        let name = client_name(&config);
        let is_unreachable = |error: &RemoteError| {
            let is_unreachable = matches!(error, RemoteError::Connect(_));
            if is_unreachable {
                on_failure(error);
            }
            is_unreachable
        };
        let client = NatsConfig::retry(|| server.connect(&name), is_unreachable).await?;
        Ok(Self::with_client(client, config, pipeline, session))
    }

    fn with_client(
        client: Client,
        config: WorkerConfig,
        pipeline: Pipeline,
        session: Session,
    ) -> Self {
        let mut id = random_id();
        id.truncate(16);
        Self(Arc::new(WorkerState {
            id,
            sessions: WorkerSessions::new(session),
            payloads: MessageCodec::new(client, &config.namespace),
            nonces: UsedNonces::default(),
            slots: Semaphore::new(config.max_calls),
            preparing: Semaphore::new(MAX_PREPARING),
            offer: Mutex::default(),
            running: Mutex::default(),
            questions: OpenQuestions::default(),
            reading: Semaphore::new(MAX_READING),
            tasks: TaskTracker::new(),
            drain: CancellationToken::new(),
            counters: WorkerCounters::default(),
            config,
            pipeline,
        }))
    }

    /// Returns the id of the worker.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Serves until `shutdown`, or until a host drains the worker; then waits for the running calls.
    ///
    /// # Errors
    ///
    /// Fails when the tools cannot be offered.
    pub async fn serve(self, shutdown: CancellationToken) -> Result<(), RemoteError> {
        // As a task it runs on the threads that receive the messages; where a program blocks on this
        // future, each request would wake another thread.
        let serving = AbortOnDropHandle::new(tokio::spawn(self.0.serve_requests(shutdown)));
        match serving.await {
            Ok(served) => served,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime is shut down.
            Err(_) => Ok(()),
        }
    }
}

impl WorkerState {
    /// Serves until the worker ends, and waits for the running calls.
    async fn serve_requests(
        self: Arc<Self>,
        shutdown: CancellationToken,
    ) -> Result<(), RemoteError> {
        let state = &self;
        let client = &state.payloads.client;
        let subject = |verb| worker_subject(&state.config.namespace, &state.id, verb) + ".*";
        let mut cancels = client.subscribe(subject(CANCEL)).await.map_err(RemoteError::request)?;
        let mut answers = client.subscribe(subject(ANSWER)).await.map_err(RemoteError::request)?;
        let mut changes = state.pipeline.toolset().subscribe_changes();
        let (mut service, mut requests) = state.offer_tools().await?;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = state.drain.cancelled() => break,
                Some(cancel) = cancels.next() => state.cancel_call(&cancel.subject),
                Some(answer) = answers.next() => state.receive_answer(&answer),
                Some((kind, request)) = requests.next() => {
                    state.tasks.spawn(Arc::clone(state).handle(kind, request));
                }
                Ok(()) = changes.changed() => {
                    if !state.has_current_offer() {
                        // The new service is there before the old one goes.
                        match state.offer_tools().await {
                            Ok((renewed, received)) => {
                                let old = std::mem::replace(&mut service, renewed);
                                let _ = timeout(UNSUBSCRIBE_TIMEOUT, old.stop()).await;
                                requests.extend(received);
                            }
                            // The next change tries again; calls go on with the tools as they were.
                            Err(error) => {
                                tracing::warn!(%error, "the changed tools cannot be offered");
                            }
                        }
                    }
                }
                else => break,
            }
        }
        // From here on no host finds the worker, and calls that were prepared go elsewhere.
        let _ = timeout(UNSUBSCRIBE_TIMEOUT, service.stop()).await;
        // What was received meanwhile is still answered: a request that is dropped would be a lost call.
        let received = async {
            while let Some((kind, request)) = requests.next().await {
                state.tasks.spawn(Arc::clone(state).handle(kind, request));
            }
        };
        let _ = timeout(UNSUBSCRIBE_TIMEOUT, received).await;
        drop(requests);
        state.announce(Bytes::from(state.id.clone())).await;
        state.tasks.close();
        let ended = async {
            let mut ended = std::pin::pin!(state.tasks.wait());
            loop {
                tokio::select! {
                    () = &mut ended => return,
                    Some(cancel) = cancels.next() => state.cancel_call(&cancel.subject),
                    Some(answer) = answers.next() => state.receive_answer(&answer),
                }
            }
        };
        if timeout(state.config.drain_timeout, ended).await.is_err() {
            state.cancel_all();
            state.tasks.wait().await;
        }
        // Without a server it would wait until there is one.
        let _ = timeout(SEND_TIMEOUT, client.flush()).await;
        Ok(())
    }

    /// Registers a service with the current tools.
    async fn offer_tools(self: &Arc<Self>) -> Result<(Service, IncomingRequests), RemoteError> {
        let offer = Arc::new(ToolOffer::from_toolset(self.pipeline.toolset())?);
        offer.check_size(self.payloads.client.max_payload())?;
        let failed = |error: async_nats::Error| RemoteError::Offer(error.to_string());
        let namespace = &self.config.namespace;
        let state = Arc::clone(self);
        let metadata = HashMap::from([
            (WORKER.to_owned(), self.id.clone()),
            (PROGRAM.to_owned(), self.config.program.clone()),
            (TOOL_COUNT.to_owned(), offer.iter().count().to_string()),
        ]);
        let service = self
            .payloads
            .client
            .service_builder()
            .description(format!("tools of {}", self.config.program))
            .metadata(metadata)
            .stats_handler(move |endpoint, _| match endpoint == RUN {
                true => state.load(),
                false => serde_json::Value::Null,
            })
            .start(service_name(namespace), env!("CARGO_PKG_VERSION"))
            .await
            .map_err(failed)?;
        let mut requests = SelectAll::new();
        for (verb, kind) in [
            (RUN, EndpointKind::Run),
            (PREPARE, EndpointKind::Prepare),
            (DRAIN, EndpointKind::Drain),
        ] {
            let subject = worker_subject(namespace, &self.id, verb);
            let endpoint = service.endpoint_builder().name(verb).queue_group(&self.id);
            requests.push(tagged(kind, endpoint.add(subject).await.map_err(failed)?));
        }
        for tool in offer.iter() {
            let subject = tool_subject(namespace, &tool.name, &tool.hash);
            let endpoint = service
                .endpoint_builder()
                .name(&tool.name)
                .queue_group(short_hash(&tool.hash))
                .metadata(tool.metadata());
            requests
                .push(tagged(EndpointKind::Prepare, endpoint.add(subject).await.map_err(failed)?));
        }
        *self.lock_offer() = offer;
        // Without a server it would wait until there is one, which then hears of the service.
        if let Ok(flushed) = timeout(SEND_TIMEOUT, self.payloads.client.flush()).await {
            flushed.map_err(RemoteError::request)?;
        }
        self.announce(Bytes::new()).await;
        Ok((service, requests))
    }

    /// Whether the tools that are offered are those of the pipeline.
    fn has_current_offer(&self) -> bool {
        ToolOffer::from_toolset(self.pipeline.toolset()).is_ok_and(|now| now == **self.lock_offer())
    }

    /// Tells hosts to look again, and which worker goes; they also look from time to time.
    async fn announce(&self, gone: Bytes) {
        let subject = changed_subject(&self.config.namespace);
        let _ = timeout(SEND_TIMEOUT, self.payloads.client.publish(subject, gone)).await;
    }
}

/// Returns the name under which the server lists the connection of a worker.
fn client_name(config: &WorkerConfig) -> String {
    format!("worker of {}", config.namespace)
}

fn tagged(kind: EndpointKind, endpoint: Endpoint) -> BoxStream<'static, (EndpointKind, Request)> {
    endpoint.zip(stream::repeat(kind)).map(|(request, kind)| (kind, request)).boxed()
}
