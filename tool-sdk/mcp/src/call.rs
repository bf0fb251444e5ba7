//! Runs one `tools/call` request: starts the call, forwards its events, asks the client, and
//! returns the outcome.
//!
//! A legacy client is asked while the call runs (`legacy_client`). For a modern client the call is
//! suspended (`suspended_calls`) and resumed by its next request.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, ErrorData, InputRequest,
    InputRequests, InputRequiredResult, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize as _;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{
    ApprovalReceiver, ApprovalSender, Call, CallId, Leniency, Outcome, PendingRequest, RawArgs,
    Session, Subscription, ToolsetView, approval_channel,
};

use super::approval_form;
use super::connection::{Connection, handed_off_call, raw_arguments, request_principal};
use super::event_relay::{EventRelay, NotificationTarget, log_severity};
use super::fast_path::SpawnedCall;
use super::input::{
    InputCapabilities, PendingInputs, PendingQuestions, QuestionReceiver, missing_capability_error,
    question_channel,
};
use super::listing::ProtocolEra;
use super::result::{ContentSupport, to_call_result};
use super::suspended_calls::{CallRequest, SuspendedCall};

/// The key of the approval question among the input requests.
const APPROVAL_KEY: &str = "approval";

/// Returns the arguments of a client's call. Models in strict mode send `null` for an optional
/// argument; it counts as absent, and the outcome has a note of it.
pub(super) fn client_args<'a>(text: impl Into<Cow<'a, str>>) -> RawArgs<'a> {
    RawArgs::new(text).lenient(Leniency::default().null_is_absent())
}

/// Calls a tool, or resumes a suspended call.
pub(super) async fn call_tool(
    connection: &Connection,
    mut params: CallToolRequestParams,
    cx: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let request = CallRequest::from_params(&params, request_principal(&cx).as_deref());
    let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
    let talk = CallHandler { connection, request, era, cx };
    if let Some((begun, events)) = handed_off_call(&talk.cx) {
        return talk.adopt_call(begun, events).await;
    }
    let given = params.input_responses.take().unwrap_or_default();
    let Some(handle) = params.request_state.take() else {
        return talk.begin_call(given).await;
    };
    let SuspendedCall { running, awaited: wants } =
        connection.server.suspended_calls.resume(&handle, &talk.request)?;
    talk.resume_call(running, wants, &given).await
}

/// The input that a call waits for.
pub(super) enum AwaitedInput {
    /// An approval.
    Approval(PendingRequest),
    /// Answers to questions of its tool.
    Questions(PendingQuestions),
}

/// Handles one request while its call runs.
struct CallHandler<'a> {
    connection: &'a Connection,
    request: CallRequest,
    era: ProtocolEra,
    cx: RequestContext<RoleServer>,
}

impl CallHandler<'_> {
    fn start_relay(&self, call: &CallId) -> Option<EventRelay> {
        EventRelay::subscribe(&self.connection.server.pipeline, call, self.notification_target())
    }

    fn notification_target(&self) -> NotificationTarget {
        let level = match self.era {
            ProtocolEra::Legacy => Some(self.connection.min_log_level()),
            ProtocolEra::Modern => self.cx.meta.log_level().map(log_severity),
        };
        let token = self.cx.meta.get_progress_token();
        NotificationTarget { peer: self.cx.peer.clone(), token, level }
    }

    async fn begin_call(self, given: InputResponses) -> Result<CallToolResponse, ErrorData> {
        let id = CallId::generate();
        let relay = self.start_relay(&id);
        let (approver, asks) = approval_channel();
        let (desk, inbox) = question_channel(self.connection.input_capabilities(&self.cx), given);
        let session = self.call_session(approver, desk)?;
        let running = self.spawn_call(id, session, asks, inbox);
        self.wait_for_outcome(running, relay).await
    }

    /// Takes over a call that the fast path started, with its queued events.
    async fn adopt_call(
        self,
        begun: SpawnedCall,
        events: Subscription,
    ) -> Result<CallToolResponse, ErrorData> {
        let relay = EventRelay::spawn(events, self.notification_target());
        // A legacy client is asked directly, so these channels stay empty.
        let (_, asks) = approval_channel();
        let (_, inbox) = question_channel(InputCapabilities::default(), InputResponses::default());
        self.wait_for_outcome(
            SuspendableCall { spawned: begun, asks, questions: inbox },
            Some(relay),
        )
        .await
    }

    /// Returns the session of the call. A legacy client is asked directly, a modern one through the
    /// result of its request.
    fn call_session(
        &self,
        approver: ApprovalSender,
        desk: PendingInputs,
    ) -> Result<Session, ErrorData> {
        match self.era {
            ProtocolEra::Legacy => self.connection.legacy_session(&self.cx),
            ProtocolEra::Modern => {
                let session =
                    self.connection.request_session(&self.cx)?.with_inquiry_handler(Arc::new(desk));
                match self.connection.can_ask(self.connection.input_capabilities(&self.cx)) {
                    true => Ok(session.with_approver(approver)),
                    false => Ok(session),
                }
            }
        }
    }

    fn spawn_call(
        &self,
        id: CallId,
        session: Session,
        asks: ApprovalReceiver,
        inbox: QuestionReceiver,
    ) -> SuspendableCall {
        let pipeline = self.connection.server.pipeline.clone();
        let cancel = CancellationToken::new();
        let CallRequest { name, arguments, .. } = self.request.clone();
        // The tool's parser gets the arguments as the client wrote them, so that it sees duplicate
        // keys.
        let arguments = raw_arguments(&self.cx).map_or(arguments, str::to_owned);
        let mut call = Call::new(name, client_args(arguments)).cancelled_by(cancel.clone());
        call.id = Some(id.clone());
        let view = pipeline.toolset().view_for(&session);
        let running = Box::pin(async move { pipeline.call(&session, call).await });
        SuspendableCall {
            spawned: SpawnedCall::spawn(id, view, running, cancel),
            asks,
            questions: inbox,
        }
    }

    /// Resumes a suspended call if the client has answered.
    async fn resume_call(
        self,
        running: SuspendableCall,
        wants: AwaitedInput,
        given: &InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let relay = self.start_relay(&running.spawned.id);
        match wants {
            AwaitedInput::Approval(pending) => {
                let Some(answer) = approval_answer(given) else {
                    return self.suspend_call(running, AwaitedInput::Approval(pending));
                };
                let reach = self.connection.approval_scope(&self.cx);
                let reply = approval_form::parse_approval(pending.request(), reach, &answer);
                pending.respond(reply);
            }
            AwaitedInput::Questions(wanted) => {
                if let Err(wanted) = wanted.deliver_answers(given) {
                    return self.suspend_call(running, AwaitedInput::Questions(wanted));
                }
            }
        }
        self.wait_for_outcome(running, relay).await
    }

    /// Waits until the call has finished or needs input, and returns the response.
    async fn wait_for_outcome(
        self,
        mut running: SuspendableCall,
        relay: Option<EventRelay>,
    ) -> Result<CallToolResponse, ErrorData> {
        let outcome = match running.next_step(&self.cx.ct, &self.connection.grace_expired).await? {
            CallStep::NeedsInput(wants) => return self.suspend_call(running, wants),
            CallStep::Finished(outcome) => outcome,
        };
        if let Some(relay) = relay {
            relay.finish().await;
        }
        if let Err(failed) = &outcome.result
            && let Some(kind) = running.questions.missing_capability(failed)
        {
            return Err(missing_capability_error(kind));
        }
        self.build_response(outcome, &running.spawned.view)
    }

    /// Suspends the call and returns the questions to the client.
    fn suspend_call(
        self,
        running: SuspendableCall,
        wants: AwaitedInput,
    ) -> Result<CallToolResponse, ErrorData> {
        let questions = match &wants {
            AwaitedInput::Approval(pending) => self.approval_request(pending)?,
            AwaitedInput::Questions(wanted) => wanted.to_input_requests()?,
        };
        let waiting = SuspendedCall { running, awaited: wants };
        let handle = self.connection.server.suspended_calls.suspend(self.request, waiting)?;
        Ok(InputRequiredResult::new(Some(questions), Some(handle)).into())
    }

    fn approval_request(&self, pending: &PendingRequest) -> Result<InputRequests, ErrorData> {
        let question = approval_form::build_approval_form(
            pending.request(),
            self.connection.approval_scope(&self.cx),
        )?;
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        Ok([(APPROVAL_KEY.to_owned(), question)].into())
    }

    /// Converts the outcome. An unknown tool is a protocol error and not a failed call.
    fn build_response(
        &self,
        outcome: Outcome,
        view: &ToolsetView,
    ) -> Result<CallToolResponse, ErrorData> {
        match view.definition(&self.request.name) {
            Some(definition) => {
                let ui = self.connection.ui_support(&self.cx);
                let blocks = ContentSupport::from_version(self.cx.protocol_version().as_ref());
                Ok(to_call_result(outcome, definition, (self.era, blocks), ui).into())
            }
            None => Err(ErrorData::invalid_params(outcome.text().into_owned(), None)),
        }
    }
}

/// Returns the client's answer to the approval question, if there is one.
fn approval_answer(given: &InputResponses) -> Option<ElicitResult> {
    ElicitResult::deserialize(given.get(APPROVAL_KEY)?).ok()
}

/// A running call that may span several requests.
pub(super) struct SuspendableCall {
    spawned: SpawnedCall,
    asks: ApprovalReceiver,
    questions: QuestionReceiver,
}

/// What the call did.
enum CallStep {
    NeedsInput(AwaitedInput),
    Finished(Outcome),
}

impl SuspendableCall {
    async fn next_step(
        &mut self,
        stop: &CancellationToken,
        over: &CancellationToken,
    ) -> Result<CallStep, ErrorData> {
        tokio::select! {
            biased;
            Some(pending) = self.asks.recv() => Ok(CallStep::NeedsInput(AwaitedInput::Approval(pending))),
            Some(wanted) = self.questions.recv() => Ok(CallStep::NeedsInput(AwaitedInput::Questions(wanted))),
            outcome = wait_for_end(&mut self.spawned, stop, over) => outcome.map(CallStep::Finished),
        }
    }
}

/// Waits for the end of a call. Cancels it when one of the tokens is triggered.
async fn wait_for_end(
    call: &mut SpawnedCall,
    stop: &CancellationToken,
    over: &CancellationToken,
) -> Result<Outcome, ErrorData> {
    let outcome = tokio::select! {
        biased;
        outcome = &mut call.outcome => Some(outcome),
        () = stop.cancelled() => None,
        () = over.cancelled() => None,
    };
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => {
            call.cancel.cancel();
            (&mut call.outcome).await
        }
    };
    outcome.map_err(|_| ErrorData::internal_error("the call ended without a result", None))
}
