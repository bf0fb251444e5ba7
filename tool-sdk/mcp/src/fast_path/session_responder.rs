//! The fast path over HTTP: answers single requests of a legacy session without rmcp if they need
//! not wait.
//!
//! A call is polled once in place. If it has finished by then, and no event has to be sent, the
//! result is the response. Otherwise it is spawned, and rmcp's handler takes it over together with
//! the queued events, so that questions, notifications and cancellation work as usual.
//!
//! **Invariant:** a call starts once, and keeps running while it is handed over.

use std::future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_sdk_core::{CallId, Outcome, Pipeline, Session, Subscription, ToolsetView};

use super::call_buffers::CallBuffers;
use super::fast_request::{FastRequest, ToolCall};
use super::in_flight::{InFlightGuard, InFlightRequests};
use super::log_forwarder::LogThreshold;
use super::response_writer;
use crate::event_relay::is_logged;
use crate::legacy_client::{LegacyClient, OriginatingRequest};
use crate::listing::ToolListing;
use crate::result::ContentSupport;
use crate::ui::UiSupport;

/// How many bytes an answer has that says little.
const INITIAL_CAPACITY: usize = 256;

/// What answers requests of one legacy session.
pub(crate) struct SessionResponder {
    pub(crate) pipeline: Pipeline,
    pub(crate) listing: Arc<ToolListing>,
    pub(crate) session: Session,
    /// The client, if it can answer questions.
    pub(crate) client: Option<LegacyClient>,
    pub(crate) ui: UiSupport,
    pub(crate) content: ContentSupport,
    pub(crate) log_threshold: Arc<LogThreshold>,
    /// The requests of the session that have no answer yet.
    pub(crate) in_flight: Arc<InFlightRequests>,
}

/// What became of a request.
pub(crate) enum FastResponse {
    /// It has its answer.
    Complete(Vec<u8>),
    /// It is a call with which rmcp's handler has to go on. Its id is taken until then.
    HandedOff(HandedOffCall, InFlightGuard),
    /// Nothing; it is for rmcp.
    NotHandled,
}

impl SessionResponder {
    pub(crate) async fn respond(&self, body: &[u8]) -> FastResponse {
        let mut out = Vec::with_capacity(INITIAL_CAPACITY);
        let simple = FastRequest::parse_line(body);
        if simple
            .as_ref()
            .and_then(FastRequest::request_id)
            .is_some_and(|id| self.in_flight.contains(id))
        {
            return FastResponse::NotHandled;
        }
        match simple {
            Some(FastRequest::Ping { id }) => response_writer::write_result(&mut out, id, "{}"),
            Some(FastRequest::List { id, cursor }) => {
                let view = self.pipeline.toolset().view_for(&self.session);
                let list = self.listing.page_json(&view, self.ui, cursor.as_deref());
                let Some(list) = list else { return FastResponse::NotHandled };
                response_writer::write_result(&mut out, id, &list);
            }
            Some(FastRequest::Call { id, call }) => return self.call_tool(id, &call).await,
            Some(FastRequest::Cancelled { .. }) | None => return FastResponse::NotHandled,
        }
        FastResponse::Complete(out)
    }

    async fn call_tool(&self, id: &str, call: &ToolCall<'_>) -> FastResponse {
        let view = self.pipeline.toolset().view_for(&self.session);
        let Some(definition) = view.definition(&call.name) else { return FastResponse::NotHandled };
        let Some(ticket) = self.in_flight.insert_guarded(id) else {
            return FastResponse::NotHandled;
        };
        let order = CallBuffers::from_call(call);
        let (call_id, cancel) = (CallId::generate(), order.cancel.clone());
        let events = self.pipeline.subscribe_to(&call_id);
        let (session, taken) = self.client_session(id);
        let pipeline = self.pipeline.clone();
        let known_as = call_id.clone();
        let mut running: CallFuture = Box::pin(async move {
            let mut call = order.to_call();
            call.id = Some(known_as);
            pipeline.call(&session, call).await
        });
        match future::poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await {
            Poll::Ready(outcome)
                if !events.contains(|kind| is_logged(kind, self.log_threshold.get())) =>
            {
                let mut out = Vec::with_capacity(INITIAL_CAPACITY);
                response_writer::write_outcome(
                    &mut out,
                    id,
                    outcome,
                    definition,
                    (self.ui, self.content),
                );
                return FastResponse::Complete(out);
            }
            Poll::Ready(outcome) => running = Box::pin(future::ready(outcome)),
            Poll::Pending => {}
        }
        let begun = SpawnedCall::spawn(call_id, view, running, cancel.token().clone());
        FastResponse::HandedOff(
            HandedOffCall { call: Arc::new(Mutex::new(Some((begun, events)))), taken },
            ticket,
        )
    }

    /// The session in which questions go to the stream of this request, and what they wait for.
    fn client_session(&self, id: &str) -> (Session, Option<CancellationToken>) {
        let session = self.session.clone();
        let Some(user) = &self.client else { return (session, None) };
        let Ok(request) = serde_json::from_str(id) else { return (session, None) };
        let taken = CancellationToken::new();
        let cause = OriginatingRequest { request, registered: Some(taken.clone()) };
        (user.for_request(cause).attach_to(session), Some(taken))
    }
}

type CallFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A call that runs.
pub(crate) struct SpawnedCall {
    pub(crate) id: CallId,
    /// The tools as they were when the call came.
    pub(crate) view: Arc<ToolsetView>,
    pub(crate) outcome: JoinHandle<Outcome>,
    pub(crate) cancel: CancellationToken,
    /// Cancels the call when this is dropped.
    _guard: DropGuard,
}

impl SpawnedCall {
    pub(crate) fn spawn(
        id: CallId,
        view: Arc<ToolsetView>,
        running: CallFuture,
        cancel: CancellationToken,
    ) -> Self {
        let outcome = tokio::spawn(running);
        Self { id, view, outcome, _guard: cancel.clone().drop_guard(), cancel }
    }
}

/// A call on its way to rmcp's handler, beside the request that it is of, with what is to be
/// told of it.
#[derive(Clone)]
pub(crate) struct HandedOffCall {
    call: Arc<Mutex<Option<(SpawnedCall, Subscription)>>>,
    /// Triggered when the handler has taken the call; `None` if no question waits for that.
    taken: Option<CancellationToken>,
}

impl HandedOffCall {
    /// Takes the call. Only the first caller gets it.
    pub(crate) fn take(&self) -> Option<(SpawnedCall, Subscription)> {
        if let Some(taken) = &self.taken {
            taken.cancel();
        }
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::sync::Semaphore;
    use tokio::time::timeout;
    use tool_sdk_core::{
        Context, Definition, DynamicTool, Registry, Risk, RiskClass, Schema, ToolName,
    };

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Counts a call that was dropped.
    struct DropCounter(Arc<AtomicUsize>);

    impl Drop for DropCounter {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Starts a call that waits for `gate`, and returns what rmcp would take over.
    async fn begin_waiting(gate: &Arc<Semaphore>, dropped: &Arc<AtomicUsize>) -> HandedOffCall {
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let schema = serde_json::from_value::<Schema>(schema).unwrap();
        let definition = Definition::new(ToolName::from_static("wait"), "Waits.", schema);
        let definition = definition.risk(Risk::new(RiskClass::Read));
        let (gate, dropped) = (Arc::clone(gate), Arc::clone(dropped));
        let tool = DynamicTool::new(definition, move |_: Value, _: Context| {
            let (gate, counter) = (Arc::clone(&gate), DropCounter(Arc::clone(&dropped)));
            async move {
                let _counter = counter;
                gate.acquire().await.unwrap().forget();
                "it went on"
            }
        });
        let responder = SessionResponder {
            pipeline: Pipeline::new(Registry::builder().add(tool).build().unwrap()),
            listing: Arc::default(),
            session: Session::default(),
            client: None,
            ui: UiSupport::TextOnly,
            content: ContentSupport::All,
            log_threshold: Arc::default(),
            in_flight: Arc::default(),
        };
        let call = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{}}}"#;
        match responder.respond(call).await {
            FastResponse::HandedOff(handed, _) => handed,
            FastResponse::Complete(_) | FastResponse::NotHandled => panic!("it has to wait"),
        }
    }

    // A call that has begun runs on, also when rmcp takes nothing for as long as it runs.
    #[tokio::test]
    async fn runs_a_call_on_that_rmcp_has_not_taken_over_yet() {
        let gate = Arc::new(Semaphore::new(0));
        let handed = begin_waiting(&gate, &Arc::default()).await;
        gate.add_permits(1);
        let freed = async {
            while gate.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, freed).await.expect("it goes on");
        let (begun, _) = handed.take().unwrap();
        assert_eq!(begun.outcome.await.unwrap().text(), "it went on");
    }

    #[tokio::test]
    async fn cancels_a_call_that_rmcp_never_takes_over() {
        let (gate, dropped) = (Arc::new(Semaphore::new(0)), Arc::<AtomicUsize>::default());
        let handed = begin_waiting(&gate, &dropped).await;
        drop(handed);
        let ended = async {
            while dropped.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, ended).await.expect("the call ends");
    }
}
