//! The state that all handlers share.

use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Once};

use tool_sdk_core::{
    ApprovalRequest, ApprovalResponse, Approver, CallRecord, Pipeline, Session, ToolsetView,
};

use super::event_hub::EventHub;
use super::idempotency::IdempotencyTable;
use super::metrics::CallMetrics;
use super::options::RestOptions;
use super::questions::QuestionTable;
use super::random_id::random_id;
use super::recent_calls::RecentCalls;
use super::running_calls::RunningCalls;
use super::sessions::SessionTable;
use crate::auth::{Authenticator, HttpCaller};

/// The state that all handlers share.
pub(super) struct RestService {
    pub(super) pipeline: Pipeline,
    pub(super) options: RestOptions,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) sessions: SessionTable,
    pub(super) running: RunningCalls,
    pub(super) recent: RecentCalls,
    pub(super) idempotency: IdempotencyTable,
    pub(super) events: Arc<EventHub>,
    pub(super) metrics: Arc<CallMetrics>,
    pub(super) questions: Arc<QuestionTable>,
    /// One for all calls, so that equal requests of a session are merged.
    approver: Arc<dyn Approver>,
    pump: Once,
}

impl RestService {
    pub(super) fn new(
        pipeline: Pipeline,
        options: RestOptions,
        authenticator: Arc<Authenticator>,
    ) -> Arc<Self> {
        let running = RunningCalls::new(options.max_running_calls);
        Arc::new(Self {
            pipeline,
            options,
            authenticator,
            sessions: SessionTable::default(),
            running,
            recent: RecentCalls::default(),
            idempotency: IdempotencyTable::default(),
            events: Arc::new(EventHub::new(random_id("e").unwrap_or_default())),
            metrics: Arc::default(),
            questions: Arc::default(),
            approver: Arc::new(ApproverById),
            pump: Once::new(),
        })
    }

    /// Starts the task that reads the events of the pipeline, once there is a runtime.
    pub(super) fn start_event_pump(&self) {
        self.pump.call_once(|| {
            let (events, metrics) = (Arc::clone(&self.events), Arc::clone(&self.metrics));
            let subscription = self.pipeline.subscribe();
            tokio::spawn(async move { events.pump(subscription, &metrics).await });
        });
    }

    /// Returns the session for a call. Calls that need an approval wait for it, if a bearer of
    /// another token may answer; otherwise they are denied, and the denial says how to allow them.
    pub(super) fn with_approver(&self, session: Session, caller: &HttpCaller) -> Session {
        let asks = self.options.asks_approvers
            && !self.pipeline.has_approver()
            && session.session_approver().is_none()
            && self.authenticator.has_approver(&caller.principal);
        match asks {
            true => session.with_shared_approver(Arc::clone(&self.approver)),
            false => session,
        }
    }

    /// Returns the tools that a client can use.
    pub(super) fn view_for(&self, caller: &HttpCaller) -> Arc<ToolsetView> {
        let session = self.new_session(caller, String::new());
        self.pipeline.toolset().view_for(&session)
    }

    /// Saves a call in the history. The host learns of a failure, the client does not.
    pub(super) async fn save_call(&self, record: CallRecord) {
        if let Err(error) = self.options.session_store.save_call(record).await {
            tracing::warn!("cannot save a call in the history: {error}");
        }
    }

    /// Removes the history of a session.
    pub(super) async fn forget_history(&self, session: &str) {
        if let Err(error) = self.options.session_store.remove_session(session).await {
            tracing::warn!("cannot remove the history of a session: {error}");
        }
    }
}

impl std::fmt::Debug for RestService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestService").field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}

/// Leaves the answer to `POST /v1/approvals/{id}`.
pub(super) struct ApproverById;

impl Approver for ApproverById {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        Box::pin(ready(None))
    }
}
