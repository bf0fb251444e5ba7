//! The workers of a namespace, whose tools a host has beside its own.
//!
//! [`host_connection`] is the connection to the server, [`discovery`] keeps the list of workers,
//! [`published_tools`] publishes their tools in the [`attached_toolset`], [`definition_review`] shows
//! their definitions, [`tool`] is a tool of theirs, [`prepare`] and [`run`] are the two messages of a
//! call, [`replies`] receives what the worker reports, and [`questions`] answers what its tool asks
//! meanwhile.
//!
//! **Invariant:** nothing that a worker says lowers what the host requires of a call.

mod attached_toolset;
mod definition_review;
mod discovery;
mod host_connection;
mod known_workers;
mod prepare;
mod published_tools;
mod questions;
mod replies;
mod run;
mod tool;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use serde::Serialize;
use tokio::sync::{Notify, OnceCell, watch};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{Pipeline, ToolPins, Toolset};

use self::attached_toolset::AttachedToolset;
pub use self::attached_toolset::shared_prefix_message;
pub use self::definition_review::DefinitionReview;
pub use self::host_connection::ConnectionStatus;
use self::host_connection::HostConnection;
use self::known_workers::KnownWorkers;
use self::published_tools::PublishedTools;
use self::replies::ReplyInbox;
use crate::connection::NatsConfig;
use crate::error::RemoteError;
use crate::namespace::Namespace;
use crate::payload::MessageCodec;
use crate::permit::{Permit, PermitPurpose, PermitSigner};
use crate::protocol::{DRAIN, WorkerRefusal, worker_subject};

/// How long a permit to drain a worker is valid, and the answer may take.
const DRAIN_ANSWER: Duration = Duration::from_secs(5);

/// How a host uses the workers of a namespace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkersConfig {
    namespace: Namespace,
    signer: PermitSigner,
    prepare_timeout: Duration,
    lost_after: Duration,
    refresh: Duration,
    /// `None` trusts every definition.
    pins: Option<ToolPins>,
}

impl WorkersConfig {
    /// Returns the settings for the workers of `namespace` that accept the permits of `signer`: 6 s to
    /// prepare a call, and a worker is lost after 5 s without a heartbeat.
    #[must_use]
    pub fn new(namespace: Namespace, signer: PermitSigner) -> Self {
        Self {
            namespace,
            signer,
            prepare_timeout: Duration::from_secs(6),
            lost_after: Duration::from_secs(5),
            refresh: Duration::from_secs(10),
            pins: Some(ToolPins::in_memory()),
        }
    }

    /// Sets how long it may take until a worker has prepared a call.
    #[must_use]
    pub fn prepare_timeout(mut self, timeout: Duration) -> Self {
        self.prepare_timeout = timeout;
        self
    }

    /// Sets after what silence the worker of a running call is lost. Workers send a heartbeat each
    /// second, unless they are told otherwise.
    #[must_use]
    pub fn lost_after(mut self, silence: Duration) -> Self {
        self.lost_after = silence;
        self
    }

    /// Sets how often the host asks which workers there are. Workers also announce changes.
    #[must_use]
    pub fn refresh(mut self, interval: Duration) -> Self {
        self.refresh = interval.max(Duration::from_millis(50));
        self
    }

    /// Trusts what workers say of their tools: a tool that was never seen, or has changed, does not
    /// ask for approval because of that.
    #[must_use]
    pub fn trust_definitions(mut self) -> Self {
        self.pins = None;
        self
    }

    /// Stores the definitions that users let run in `pins`; in memory by default.
    #[must_use]
    pub fn pins(mut self, pins: ToolPins) -> Self {
        self.pins = Some(pins);
        self
    }
}

/// The workers of a namespace, whose tools a pipeline has beside its own.
///
/// Their tools work like any other: a model calls them by name; rules, hooks and limits apply. Their
/// names and permissions begin with `remote__NAMESPACE__`. A tool that was not yet run in its current
/// definition asks under the permission `remote_definition`, and the prompt shows what changed.
///
/// Cheap to clone; clones share the connection.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::remote::{NatsConfig, PermitSigner, Workers, WorkersConfig};
/// use tool_sdk::{Call, Pipeline, Registry, Session};
///
/// # async fn example(key: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let pipeline = Pipeline::new(Registry::default());
/// let config = WorkersConfig::new("demo".parse()?, PermitSigner::from_key(key)?);
/// let server = NatsConfig::new("nats://127.0.0.1:4222")?;
/// let workers = Workers::connect(&server, config).await?;
/// workers.attach_to(&pipeline)?;
///
/// let call = Call::new("remote__demo__read_file", r#"{"path": "notes.txt"}"#);
/// println!("{}", pipeline.call(&Session::default(), call).await.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Workers(Arc<OpenWorkers>);

/// Closes the connection when the last handle is dropped: tools and state own each other.
struct OpenWorkers(Arc<HostConnection>);

impl Drop for OpenWorkers {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the tools and tasks of a namespace share.
struct WorkersState {
    config: WorkersConfig,
    payloads: MessageCodec,
    attached: Arc<AttachedToolset>,
    /// Where workers report on running calls; opened with the first one.
    replies: OnceCell<ReplyInbox>,
    known: Mutex<KnownWorkers>,
    /// Held while workers are asked, so that an old answer never replaces a newer one.
    asking: tokio::sync::Mutex<()>,
    published: Mutex<PublishedTools>,
    /// Asks for a look at the workers before its time.
    look_now: Notify,
    closed: CancellationToken,
}

impl fmt::Debug for WorkersState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersState").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Workers").field(self.namespace()).finish()
    }
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its id.
    pub id: String,
    /// Its program.
    pub program: String,
    /// The names of its tools, as the worker calls them.
    pub tools: Vec<String>,
    /// Whether it answered when it was asked last.
    pub answers: bool,
}

/// What a worker has done, and its load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Its id.
    pub id: String,
    /// Its program.
    pub program: String,
    /// How many calls run.
    pub running: u64,
    /// How many calls may run.
    pub limit: u64,
    /// How many calls were run.
    pub calls: u64,
    /// How many calls failed.
    pub failed: u64,
    /// How many requests were refused because it was busy.
    pub busy: u64,
    /// How many requests were refused for another reason, such as a permit that is not valid.
    pub refused: u64,
    /// The mean time of a call, in milliseconds.
    pub average_ms: u64,
}

impl Workers {
    /// Connects to the server and looks for workers.
    ///
    /// # Errors
    ///
    /// Fails when the server cannot be reached. That there is no worker is no error.
    pub async fn connect(server: &NatsConfig, config: WorkersConfig) -> Result<Self, RemoteError> {
        let connection = HostConnection::new(server.clone(), config);
        connection.connect().await?;
        Ok(Self(Arc::new(OpenWorkers(connection))))
    }

    /// Returns at once, and connects in the background: a server that cannot be reached is tried again,
    /// with pauses of at most 2 s, until the connection is closed. The tools are published once it is
    /// there.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    #[must_use]
    pub fn connect_in_background(server: &NatsConfig, config: WorkersConfig) -> Self {
        let connection = HostConnection::new(server.clone(), config);
        tokio::spawn(Arc::clone(&connection).connect_with_retry());
        Self(Arc::new(OpenWorkers(connection)))
    }

    /// Returns whether the host is connected to the server, and follows changes of that.
    ///
    /// # Examples
    ///
    /// Wait until the server is there:
    ///
    /// ```no_run
    /// use tool_sdk::remote::{ConnectionStatus, Workers};
    ///
    /// # async fn example(workers: Workers) {
    /// let mut connection = workers.connection();
    /// let is_connected = |status: &ConnectionStatus| *status == ConnectionStatus::Connected;
    /// let _ = connection.wait_for(is_connected).await;
    /// # }
    /// ```
    #[must_use]
    pub fn connection(&self) -> watch::Receiver<ConnectionStatus> {
        self.0.0.status().subscribe()
    }

    /// Adds the tools to those of `pipeline`, keeps them current, and closes the connection with the
    /// pipeline. Attach them after the pipeline is set up: a later setter of the pipeline replaces its
    /// toolset.
    ///
    /// # Errors
    ///
    /// Fails when the pipeline has workers of a namespace that is equal to this one after `-` is
    /// replaced by `_`: their tools would have the same names.
    pub fn attach_to(&self, pipeline: &Pipeline) -> Result<(), RemoteError> {
        self.attach_toolset(&pipeline.shared_toolset())?;
        let workers = self.clone();
        pipeline.on_close("remote workers", async move || workers.close());
        Ok(())
    }

    /// Publishes the tools in `toolset` from now on, and keeps them current.
    ///
    /// # Errors
    ///
    /// Fails as [`attach_to`](Self::attach_to) does.
    #[doc(hidden)]
    pub fn attach_toolset(&self, toolset: &Arc<Toolset>) -> Result<(), RemoteError> {
        self.0.0.attach(toolset)
    }

    fn state(&self) -> Result<&Arc<WorkersState>, RemoteError> {
        self.0.0.state()
    }

    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.0.0.config.namespace
    }

    /// Asks which workers there are, and returns them.
    ///
    /// # Errors
    ///
    /// Fails when the server does not answer.
    pub async fn list(&self) -> Result<Vec<WorkerStatus>, RemoteError> {
        let state = self.state()?;
        state.discover().await?;
        Ok(state.lock_known().statuses())
    }

    /// Asks the workers for their statistics.
    ///
    /// # Errors
    ///
    /// Fails when the server does not answer.
    pub async fn stats(&self) -> Result<Vec<WorkerStats>, RemoteError> {
        self.state()?.request_stats().await
    }

    /// Returns why tools of the workers are left out of the toolset, by the names that they would have:
    /// another tool has the name, or they could never be called.
    #[must_use]
    pub fn left_out_tools(&self) -> BTreeMap<String, String> {
        self.state().map(|state| state.lock_published().left_out().clone()).unwrap_or_default()
    }

    /// Returns the definitions of the tools, with their differences to those that are pinned for all
    /// users.
    ///
    /// # Errors
    ///
    /// Fails when the host is not connected.
    pub fn review_definitions(&self) -> Result<Vec<DefinitionReview>, RemoteError> {
        Ok(self.state()?.review_definitions())
    }

    /// Pins these definitions for all users, so that calls do not ask because of them. Returns whether
    /// they are still what the workers offer; nothing is pinned otherwise.
    ///
    /// Call it only after a person has reviewed them.
    ///
    /// # Errors
    ///
    /// Fails when the host is not connected, or when the pins cannot be stored.
    pub fn trust_reviewed(&self, shown: &[DefinitionReview]) -> Result<bool, RemoteError> {
        self.state()?.pin_reviewed(shown).map_err(|error| {
            RemoteError::Config(format!("cannot store the pinned tool definitions: {error}"))
        })
    }

    /// Lets a worker end after its running calls.
    ///
    /// # Errors
    ///
    /// Fails when there is no such worker, or when it does not accept the permit.
    pub async fn drain(&self, worker: &str) -> Result<(), RemoteError> {
        let state = self.state()?;
        let is_known = state.lock_known().statuses().iter().any(|status| status.id == worker);
        if !is_known {
            let shown: String = worker.escape_debug().take(80).collect();
            return Err(RemoteError::Config(format!("there is no worker `{shown}`")));
        }
        let namespace = &state.config.namespace;
        let mut permit = Permit::new(PermitPurpose::Drain, namespace.as_str(), DRAIN_ANSWER);
        worker.clone_into(&mut permit.worker);
        let signed = state.config.signer.sign(&permit)?;
        let subject = worker_subject(namespace, worker, DRAIN);
        let asked = state.payloads.client.request(subject, signed.into());
        let answer = tokio::time::timeout(DRAIN_ANSWER, asked)
            .await
            .map_err(RemoteError::request)?
            .map_err(RemoteError::request)?;
        let accepted: Result<(), WorkerRefusal> = state.payloads.read(&answer).await?;
        accepted.map_err(|refusal| {
            RemoteError::Request(format!("the worker `{worker}` {}", refusal.reason()))
        })
    }

    /// Removes the tools, and ends the connection once running calls have ended.
    pub fn close(&self) {
        self.0.0.close();
    }
}

impl WorkersState {
    fn new(
        client: Client,
        config: WorkersConfig,
        attached: Arc<AttachedToolset>,
        closed: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            payloads: MessageCodec::new(client, &config.namespace),
            config,
            attached,
            replies: OnceCell::new(),
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            published: Mutex::default(),
            look_now: Notify::new(),
            closed,
        })
    }

    fn toolset(&self) -> Option<Arc<Toolset>> {
        self.attached.upgrade()
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownWorkers> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_published(&self) -> MutexGuard<'_, PublishedTools> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
