//! Runs one `tools/call` request: starts the call, forwards its events, asks the client, and
//! returns the outcome.
//!
//! A legacy client is asked while the call runs (`legacy_client`). For a modern client the call is
//! suspended (`suspended_calls`) and resumed by its next request.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{
    ElicitRequest, ElicitResult, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ServerResult,
};
use serde::Deserialize as _;
use serde_json::Value;
use tool_sdk_core::internal::LazyCancelToken;
use tool_sdk_core::{
    ApprovalReceiver, Call, CallId, Leniency, Outcome, PendingRequest, RawArgs, ToolsetView,
    approval_channel,
};

use super::approval_form;
use super::connection::Connection;
use super::event_relay::{EventRelay, NotificationTarget};
use super::input::{
    PendingQuestions, QuestionReceiver, missing_capability_error, question_channel,
};
use super::listing::ProtocolEra;
use super::log_threshold::log_severity;
use super::message::MessageParams;
use super::request_context::{CancelOnDrop, RequestContext};
use super::response::{HandlerResult, outcome_text};
use super::result::to_call_result;
use super::suspended_calls::{CallRequest, SuspendedCall};

/// The key of the approval question among the input requests.
const APPROVAL_KEY: &str = "approval";

/// Returns the arguments of a client's call. Models in strict mode send `null` for an optional
/// argument; it counts as absent, and the outcome has a note of it.
fn client_args<'a>(text: impl Into<Cow<'a, str>>) -> RawArgs<'a> {
    RawArgs::new(text).lenient(Leniency::default().null_is_absent())
}

/// Calls a tool, or resumes a suspended call.
pub(super) async fn call_tool(
    connection: &Connection,
    mut params: MessageParams,
    cx: &RequestContext,
) -> HandlerResult {
    let name: String = params.required("name")?;
    // The tool's parser gets the arguments as the client wrote them, so that it sees duplicate
    // keys.
    let arguments = params.take("arguments").map_or_else(|| "{}".to_owned(), String::from);
    let handler = CallHandler { connection, cx };
    match cx.era() {
        ProtocolEra::Legacy => handler.call(name, arguments).await,
        ProtocolEra::Modern => {
            let request = CallRequest::new(name, &arguments, connection.principal.as_deref());
            let answers = params.member("inputResponses")?.unwrap_or_default();
            match params.member::<String>("requestState")? {
                None => Box::pin(handler.call_suspendable(request, arguments, answers)).await,
                Some(handle) => {
                    let suspended = connection.server.suspended_calls.resume(&handle, &request)?;
                    Box::pin(handler.resume_call(request, suspended, &answers)).await
                }
            }
        }
    }
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
    cx: &'a RequestContext,
}

impl CallHandler<'_> {
    /// Subscribes to the events of a call that the client wants.
    fn subscribe(&self, call: &CallId) -> Option<EventRelay> {
        let level = match self.cx.era() {
            ProtocolEra::Legacy => Some(self.connection.log_threshold.get()),
            ProtocolEra::Modern => self.cx.meta.log_level().map(log_severity),
        };
        let token = self.cx.meta.get_progress_token();
        let target = NotificationTarget { sink: self.cx.sink.clone(), token, level };
        EventRelay::subscribe(&self.connection.server.pipeline, call, target)
    }

    /// Runs a call of a legacy client, which is asked meanwhile.
    async fn call(&self, name: String, arguments: String) -> HandlerResult {
        let pipeline = &self.connection.server.pipeline;
        self.connection.wait_for_roots().await;
        let session = self.connection.legacy_session(self.cx);
        let view = pipeline.toolset().view_for(&session);
        let mut call = Call::new(&*name, client_args(arguments));
        let id = CallId::generate();
        let relay = self.subscribe(&id);
        (call.id, call.cancel) = (Some(id), Some(self.cx.cancel.clone()));
        // Boxed, because the future is large and would be moved several times.
        let running = Box::pin(pipeline.call(&session, call));
        let outcome = match relay {
            Some(relay) => relay.forward_during(running, &self.cx.cancel).await,
            None => running.await,
        };
        let Some(definition) = view.definition(&name) else { return Err(unknown_tool(&outcome)) };
        Ok(outcome_text(outcome, definition, (self.cx.client.ui, self.cx.content_support())))
    }

    /// Starts a call of a modern client. The client is asked through the result of its request.
    async fn call_suspendable(
        &self,
        request: CallRequest,
        arguments: String,
        mut answers: InputResponses,
    ) -> HandlerResult {
        let pipeline = self.connection.server.pipeline.clone();
        let input = self.cx.client.input;
        if let Some(request) = self.connection.missing_roots(input, &mut answers) {
            // Nothing has run, so the client repeats the call as it is.
            let result = InputRequiredResult::new(Some(request), None);
            let result = ServerResult::InputRequiredResult(result);
            return self.connection.result(ProtocolEra::Modern, result);
        }
        let (approver, approvals) = approval_channel();
        let (inquiries, questions) = question_channel(input, answers);
        let session = self.connection.apply_roots(self.connection.request_session(self.cx));
        let mut session = session.with_inquiry_handler(Arc::new(inquiries));
        if self.connection.can_ask(input) {
            session = session.with_approver(approver);
        }
        let session = self.connection.attach_fallback_approver(session);
        let view = pipeline.toolset().view_for(&session);
        let (id, cancel) = (CallId::generate(), LazyCancelToken::default());
        let mut call = Call::new(request.name.clone(), client_args(arguments));
        (call.id, call.cancel) = (Some(id.clone()), Some(cancel.clone()));
        let running = SuspendableCall {
            outcome: Box::pin(async move { Some(pipeline.call(&session, call).await) }),
            cancel_on_drop: CancelOnDrop::new(cancel.clone()),
            id,
            view,
            cancel,
            approvals,
            questions,
        };
        self.wait_for_outcome(request, running).await
    }

    /// Resumes a suspended call if the client has answered.
    async fn resume_call(
        &self,
        request: CallRequest,
        suspended: SuspendedCall,
        answers: &InputResponses,
    ) -> HandlerResult {
        let SuspendedCall { running, awaited } = suspended;
        match awaited {
            AwaitedInput::Approval(pending) => {
                let Some(answer) = approval_answer(answers) else {
                    return self.suspend_call(request, running, AwaitedInput::Approval(pending));
                };
                let scope = self.connection.approval_scope();
                let response = approval_form::parse_approval(pending.request(), scope, &answer);
                pending.respond(response);
            }
            AwaitedInput::Questions(questions) => {
                if let Err(questions) = questions.deliver_answers(answers) {
                    return self.suspend_call(request, running, AwaitedInput::Questions(questions));
                }
            }
        }
        self.wait_for_outcome(request, running).await
    }

    /// Waits until the call has finished or needs input, and returns the result.
    async fn wait_for_outcome(
        &self,
        request: CallRequest,
        mut running: SuspendableCall,
    ) -> HandlerResult {
        let relay = self.subscribe(&running.id);
        let step = running.next_step(&self.cx.cancel);
        let step = match relay {
            Some(relay) => relay.forward_during(step, &self.cx.cancel).await,
            None => step.await,
        };
        let outcome = match step? {
            CallStep::NeedsInput(awaited) => return self.suspend_call(request, running, awaited),
            CallStep::Finished(outcome) => outcome,
        };
        running.cancel_on_drop.disarm();
        if let Err(failed) = &outcome.result
            && let Some(kind) = running.questions.missing_capability(failed)
        {
            return Err(missing_capability_error(kind));
        }
        let Some(definition) = running.view.definition(&request.name) else {
            return Err(unknown_tool(&outcome));
        };
        let support = (ProtocolEra::Modern, self.cx.content_support());
        let result = to_call_result(outcome, definition, support, self.cx.client.ui);
        self.connection.result(ProtocolEra::Modern, ServerResult::CallToolResult(result))
    }

    /// Suspends the call and returns the questions to the client.
    fn suspend_call(
        &self,
        request: CallRequest,
        running: SuspendableCall,
        awaited: AwaitedInput,
    ) -> HandlerResult {
        let questions = match &awaited {
            AwaitedInput::Approval(pending) => self.approval_request(pending)?,
            AwaitedInput::Questions(questions) => questions.to_input_requests()?,
        };
        let suspended = SuspendedCall { running: running.spawn(), awaited };
        let handle = self.connection.server.suspended_calls.suspend(request, suspended)?;
        let result = InputRequiredResult::new(Some(questions), Some(handle));
        self.connection.result(ProtocolEra::Modern, ServerResult::InputRequiredResult(result))
    }

    fn approval_request(&self, pending: &PendingRequest) -> Result<InputRequests, ErrorData> {
        let scope = self.connection.approval_scope();
        let form = approval_form::build_approval_form(pending.request(), scope)?;
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        Ok([(APPROVAL_KEY.to_owned(), question)].into())
    }
}

/// An unknown tool is a protocol error and not a failed call.
fn unknown_tool(outcome: &Outcome) -> ErrorData {
    ErrorData::invalid_params(outcome.text().into_owned(), None)
}

/// Returns the client's answer to the approval question, if there is one.
fn approval_answer(answers: &InputResponses) -> Option<ElicitResult> {
    ElicitResult::deserialize(answers.get(APPROVAL_KEY)?).ok()
}

/// A running call that may span several requests.
pub(super) struct SuspendableCall {
    id: CallId,
    /// The tools as they were when the call came.
    view: Arc<ToolsetView>,
    outcome: Pin<Box<dyn Future<Output = Option<Outcome>> + Send>>,
    cancel: LazyCancelToken,
    cancel_on_drop: CancelOnDrop,
    approvals: ApprovalReceiver,
    questions: QuestionReceiver,
}

/// What the call did.
enum CallStep {
    NeedsInput(AwaitedInput),
    Finished(Outcome),
}

impl SuspendableCall {
    /// Runs the call until it has finished or needs input. Cancels it when the request is
    /// cancelled.
    async fn next_step(&mut self, request: &LazyCancelToken) -> Result<CallStep, ErrorData> {
        let outcome = tokio::select! {
            biased;
            Some(pending) = self.approvals.recv() => {
                return Ok(CallStep::NeedsInput(AwaitedInput::Approval(pending)));
            }
            Some(questions) = self.questions.recv() => {
                return Ok(CallStep::NeedsInput(AwaitedInput::Questions(questions)));
            }
            outcome = &mut self.outcome => outcome,
            () = request.token().cancelled() => {
                self.cancel.token().cancel();
                (&mut self.outcome).await
            }
        };
        outcome
            .map(CallStep::Finished)
            .ok_or_else(|| ErrorData::internal_error("the call ended without a result", None))
    }

    /// Lets the call run on between two requests: approvals and questions have time limits.
    fn spawn(self) -> Self {
        let running = tokio::spawn(self.outcome);
        Self { outcome: Box::pin(async move { running.await.ok().flatten() }), ..self }
    }
}

/// Returns the arguments in a form that does not depend on white space.
pub(super) fn normalize_arguments(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(arguments) => arguments.to_string(),
        Err(_) => arguments.to_owned(),
    }
}
