//! Starts calls, knows those that run, and cancels them.
//!
//! Each call runs in a task of its own. A client that disconnects drops its [`CallHandle`], which
//! cancels the call, unless the handle was detached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_sdk_core::{
    Batch, Call, CallId, CallRecord, CallStatus, Leniency, Outcome, RawArgs, Session, Subscription,
    ToolError,
};

use super::client_profile::{ClientProfile, ToolRendering};
use super::problem::ProblemDetails;
use super::random_id::random_id;
use super::response::CallReply;
use super::service::RestService;

/// A result over this size is not kept in the history.
const MAX_STORED_BYTES: usize = 256 * 1024;

/// The calls that run.
#[derive(Debug)]
pub(super) struct RunningCalls {
    calls: Mutex<HashMap<String, RunningCall>>,
    max_per_user: usize,
}

#[derive(Clone, Debug)]
pub(super) struct RunningCall {
    pub(super) record: CallRecord,
    cancel: CancellationToken,
}

/// A call to start.
pub(super) struct NewCall {
    pub(super) session: Session,
    pub(super) tool: String,
    /// The arguments as JSON text.
    pub(super) arguments: String,
    /// Whether the history shows the call.
    pub(super) is_recorded: bool,
    /// The kind of the client, if it is a known one.
    pub(super) profile: Option<Arc<dyn ClientProfile>>,
}

/// A started call.
pub(super) struct CallHandle {
    pub(super) id: String,
    reply: watch::Receiver<Option<Arc<CallReply>>>,
    cancel: Option<DropGuard>,
    /// How the client's results and events are rendered.
    pub(super) rendering: Option<ToolRendering>,
}

impl CallHandle {
    /// Lets the call run on when the handle is dropped.
    pub(super) fn detach(mut self) -> Self {
        if let Some(guard) = self.cancel.take() {
            guard.disarm();
        }
        self
    }

    /// Waits for the end of the call.
    pub(super) async fn wait(&mut self) -> Arc<CallReply> {
        match self.reply.wait_for(Option::is_some).await {
            Ok(reply) => reply.clone().unwrap_or_else(|| lost_reply(&self.id)),
            Err(_) => lost_reply(&self.id),
        }
    }

    /// Returns another handle of the same call, which does not cancel it.
    pub(super) fn follow(&self) -> Self {
        let rendering = self.rendering.clone();
        Self { id: self.id.clone(), reply: self.reply.clone(), cancel: None, rendering }
    }
}

/// Returns the reply of a call whose task ended without one.
fn lost_reply(id: &str) -> Arc<CallReply> {
    let error = ToolError::internal("the call ended without a result");
    Arc::new(CallReply::new(&Outcome::new(CallId::from_external(id), Err(error)), "", None))
}

impl RunningCalls {
    pub(super) fn new(max_per_user: usize) -> Self {
        Self { calls: Mutex::default(), max_per_user }
    }

    /// A poisoned lock still guards whole entries: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, RunningCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn insert(&self, call: RunningCall) -> Result<(), ProblemDetails> {
        let mut calls = self.lock();
        let user = &call.record.user;
        if calls.values().filter(|it| it.record.user == *user).count() >= self.max_per_user {
            let error = format!("{} of your calls are running", self.max_per_user);
            return Err(ProblemDetails::busy(error).suggest("retry after one of them has ended"));
        }
        calls.insert(call.record.call.clone(), call);
        Ok(())
    }

    /// Returns the running call with this id.
    pub(super) fn find(&self, id: &str) -> Option<RunningCall> {
        self.lock().get(id).cloned()
    }
}

impl RunningCall {
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }
}

/// Removes a call from the table when it ends, however it ends.
struct RunningGuard {
    service: Arc<RestService>,
    id: String,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.service.running.lock().remove(&self.id);
    }
}

/// A call that is in the table, and not started yet.
struct RegisteredCall {
    running: RunningGuard,
    record: CallRecord,
    cancel: CancellationToken,
    arguments: String,
    is_recorded: bool,
    rendering: Option<ToolRendering>,
}

impl RegisteredCall {
    /// Returns the call for the pipeline. Models in strict mode send `null` for an optional
    /// argument; it counts as absent, and the outcome has a note of it.
    fn to_call(&self) -> Call<'_> {
        let arguments = RawArgs::new(&*self.arguments);
        let lenient = Leniency::default().null_is_absent();
        Call::new(&*self.record.tool, arguments.lenient(lenient))
            .id(&self.record.call)
            .cancelled_by(self.cancel.clone())
    }

    /// Returns the reply to the call, which takes its place in the history.
    async fn finish(self, outcome: &Outcome, started: Instant) -> CallReply {
        let reply = CallReply::new(outcome, &self.record.tool, self.rendering.as_ref());
        let service = &self.running.service;
        if self.is_recorded {
            service.save_call(ended_record(self.record, &reply, started)).await;
        } else if service.options.console.is_some() {
            service.recent.keep(ended_record(self.record, &reply, started));
        }
        reply
    }
}

impl RestService {
    /// Starts a call.
    ///
    /// # Errors
    ///
    /// Fails when too many calls of the user run.
    pub(super) async fn start_call(
        self: &Arc<Self>,
        call: NewCall,
    ) -> Result<CallHandle, ProblemDetails> {
        self.start_call_as(random_id("call")?, call).await
    }

    /// Starts a call, and returns its events as well.
    pub(super) async fn start_call_with_events(
        self: &Arc<Self>,
        call: NewCall,
    ) -> Result<(CallHandle, Subscription), ProblemDetails> {
        let id = random_id("call")?;
        let events = self.pipeline.subscribe_to_call(&CallId::from_external(&id));
        Ok((self.start_call_as(id, call).await?, events))
    }

    async fn start_call_as(
        self: &Arc<Self>,
        id: String,
        call: NewCall,
    ) -> Result<CallHandle, ProblemDetails> {
        let session = call.session.clone();
        let cancel = CancellationToken::new();
        let call = self.register_call(id.clone(), call, cancel.clone()).await?;
        let rendering = call.rendering.clone();
        let (sender, reply) = watch::channel(None);
        let service = Arc::clone(self);
        tokio::spawn(async move {
            let started = Instant::now();
            let outcome = service.pipeline.call(&session, call.to_call()).await;
            let reply = call.finish(&outcome, started).await;
            sender.send_replace(Some(Arc::new(reply)));
        });
        Ok(CallHandle { id, reply, cancel: Some(cancel.drop_guard()), rendering })
    }

    /// Starts the calls of one message, of one session; the handle is that of all of them, and its
    /// reply has their replies in order.
    pub(super) async fn start_batch(
        self: &Arc<Self>,
        session: Session,
        calls: Vec<NewCall>,
    ) -> Result<CallHandle, ProblemDetails> {
        let (id, cancel) = (random_id("batch")?, CancellationToken::new());
        let mut registered = Vec::new();
        for call in calls {
            let own = cancel.child_token();
            registered.push(self.register_call(random_id("call")?, call, own).await?);
        }
        let (sender, reply) = watch::channel(None);
        let (service, batch) = (Arc::clone(self), id.clone());
        tokio::spawn(async move {
            let started = Instant::now();
            let calls = registered.iter().map(RegisteredCall::to_call);
            let outcomes = Batch::new(&service.pipeline).run(&session, calls).await;
            let mut replies = Vec::new();
            for (call, outcome) in registered.into_iter().zip(&outcomes) {
                replies.push(call.finish(outcome, started).await);
            }
            sender.send_replace(Some(Arc::new(CallReply::of_batch(batch, &replies))));
        });
        Ok(CallHandle { id, reply, cancel: Some(cancel.drop_guard()), rendering: None })
    }

    /// Adds a call to the table and to the history.
    async fn register_call(
        self: &Arc<Self>,
        id: String,
        call: NewCall,
        cancel: CancellationToken,
    ) -> Result<RegisteredCall, ProblemDetails> {
        let NewCall { session, tool, arguments, is_recorded, profile } = call;
        let rendering = profile.and_then(|profile| {
            let view = self.pipeline.toolset().view_for(&session);
            let tool = Arc::new(view.definition(&tool)?.clone());
            Some(ToolRendering { profile, tool })
        });
        let record = CallRecord {
            call: id.clone(),
            session: session.id().to_owned(),
            user: session.user().map(str::to_owned),
            arguments: self.masked_arguments(&session, &tool, &arguments),
            tool,
            request: session.request().map(str::to_owned),
            status: CallStatus::Running,
            started_at: SystemTime::now(),
            elapsed_ms: None,
            response: None,
        };
        self.running.insert(RunningCall { record: record.clone(), cancel: cancel.clone() })?;
        let running = RunningGuard { service: Arc::clone(self), id };
        if is_recorded {
            self.save_call(record.clone()).await;
        }
        Ok(RegisteredCall { running, record, cancel, arguments, is_recorded, rendering })
    }

    /// Returns the arguments as the history shows them.
    fn masked_arguments(&self, session: &Session, tool: &str, arguments: &str) -> Value {
        let view = self.pipeline.toolset().view_for(session);
        match view.definition(tool) {
            Some(definition) => {
                let mut masked = definition.display.mask_arguments(arguments);
                session.secrets().mask(&mut masked);
                masked
            }
            None => Value::Null,
        }
    }
}

fn ended_record(record: CallRecord, reply: &CallReply, started: Instant) -> CallRecord {
    let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    CallRecord {
        status: reply.call_status,
        elapsed_ms: Some(elapsed),
        response: (reply.body.len() <= MAX_STORED_BYTES).then(|| reply.to_value()),
        ..record
    }
}
