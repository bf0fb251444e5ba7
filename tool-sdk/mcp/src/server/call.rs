//! Runs one `tools/call` request: starts the call, forwards its events, asks the client, and
//! returns the outcome.
//!
//! A legacy client is asked while the call runs (`legacy_client`). For a modern client the call is
//! suspended (`suspended_calls`) and resumed by its next request. A call that becomes a task runs on
//! without its request (`tasks`).

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolResult, ElicitRequest, ElicitResult, ErrorData, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, ServerResult,
};
use serde::Deserialize as _;
use serde_json::Value;
use tool_sdk_core::internal::LazyCancelToken;
use tool_sdk_core::{
    ApprovalReceiver, Call, CallId, GrantScope, Leniency, Outcome, PendingRequest, RawArgs,
    Session, TaskSupport, ToolsetView, approval_channel,
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
use super::result::{ContentSupport, to_call_result};
use super::suspended_calls::{CallRequest, SuspendedCall};
use super::tasks::{TaskRun, TaskTrigger, TaskUse};
use super::ui::UiSupport;

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
    let task_use = connection.task_use(&name, &params, cx)?;
    match (cx.era(), task_use) {
        (ProtocolEra::Legacy, TaskUse::AtOnce { ttl }) => {
            Box::pin(handler.call_as_task(name, arguments, ttl)).await
        }
        (ProtocolEra::Legacy, _) => handler.call(name, arguments).await,
        (ProtocolEra::Modern, task_use) => {
            let request = CallRequest::new(name, &arguments, connection.principal.as_deref());
            let answers = params.member("inputResponses")?.unwrap_or_default();
            match params.member::<String>("requestState")? {
                None => {
                    let call = handler.call_suspendable(request, arguments, answers, task_use);
                    Box::pin(call).await
                }
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
        let target = NotificationTarget { sink: self.cx.sink.clone(), token, level, task: None };
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
        task_use: TaskUse,
    ) -> HandlerResult {
        let input = self.cx.client.input;
        if let Some(request) = self.connection.missing_roots(input, &mut answers) {
            // Nothing has run, so the client repeats the call as it is.
            let result = InputRequiredResult::new(Some(request), None);
            let result = ServerResult::InputRequiredResult(result);
            return self.connection.result(ProtocolEra::Modern, result);
        }
        let session = self.connection.request_session(self.cx);
        let support = match task_use {
            TaskUse::OnceStarted(support) => Some(support),
            TaskUse::Never | TaskUse::AtOnce { .. } => None,
        };
        let running = self.begin_call(session, &request.name, arguments, (answers, support));
        self.wait_for_outcome(request, running).await
    }

    /// Runs a call of a client of 2025-11-25 as a task. The client is asked by its request for the result.
    async fn call_as_task(
        &self,
        tool: String,
        arguments: String,
        ttl: Option<Duration>,
    ) -> HandlerResult {
        self.connection.wait_for_roots().await;
        // The task goes on when the session of its client ends.
        let cancel = self.connection.server.session.cancel_token().child_token();
        let session = self.connection.request_session(self.cx).with_cancel(cancel);
        let input = (InputResponses::new(), Some(TaskSupport::Required));
        let call = self.begin_call(session, &tool, arguments, input);
        let task = self.connection.add_task(&call, &tool, ttl, self.cx.era())?;
        let run = TaskRun { call, awaited: None, tool, support: ResultSupport::new(self.cx) };
        self.connection.start_task(task, run, self.cx)
    }

    /// Returns a call that can be suspended, and becomes a task as `support` says.
    fn begin_call(
        &self,
        session: Session,
        tool: &str,
        arguments: String,
        (answers, support): (InputResponses, Option<TaskSupport>),
    ) -> SuspendableCall {
        let pipeline = self.connection.server.pipeline.clone();
        let input = self.cx.client.input;
        let (approver, approvals) = approval_channel();
        let (inquiries, questions) = question_channel(input, answers);
        let session = self.connection.apply_roots(session);
        let mut session = session.with_inquiry_handler(Arc::new(inquiries));
        if self.connection.can_ask(input) {
            session = session.with_approver(approver);
        }
        let session = self.connection.attach_fallback_approver(session);
        let view = pipeline.toolset().view_for(&session);
        let (id, cancel) = (CallId::generate(), LazyCancelToken::default());
        let trigger =
            support.map(|support| TaskTrigger::new(pipeline.subscribe_to_call(&id), support));
        let mut call = Call::new(tool.to_owned(), client_args(arguments));
        (call.id, call.cancel) = (Some(id.clone()), Some(cancel.clone()));
        SuspendableCall {
            outcome: Box::pin(async move { Some(pipeline.call(&session, call).await) }),
            cancel_on_drop: CancelOnDrop::new(cancel.clone()),
            id,
            view,
            cancel,
            approvals,
            questions,
            trigger,
        }
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
            CallStep::BecomesTask(awaited) => {
                return Box::pin(self.continue_as_task(request, running, awaited)).await;
            }
            CallStep::Finished(outcome) => outcome,
        };
        running.cancel_on_drop.disarm();
        let result = running.to_result(outcome, &request.name, ResultSupport::new(self.cx))?;
        self.connection.result(ProtocolEra::Modern, ServerResult::CallToolResult(result))
    }

    /// Makes a running call a task. A client of which too many tasks run waits for the result instead, if
    /// it may; otherwise the call is cancelled.
    async fn continue_as_task(
        &self,
        request: CallRequest,
        mut call: SuspendableCall,
        awaited: Option<AwaitedInput>,
    ) -> HandlerResult {
        let is_required = call.trigger.as_ref().is_some_and(TaskTrigger::is_required);
        match self.connection.add_task(&call, &request.name, None, self.cx.era()) {
            Ok(task) => {
                let support = ResultSupport::new(self.cx);
                let run = TaskRun { call, awaited, tool: request.name, support };
                self.connection.start_task(task, run, self.cx)
            }
            Err(mut error) if is_required => {
                // The call ends with this request, because nothing else keeps it.
                let words = format!("{}; the call was started and is cancelled", error.message);
                error.message = words.into();
                Err(error)
            }
            Err(_) => {
                call.trigger = None;
                match awaited {
                    Some(awaited) => self.suspend_call(request, call, awaited),
                    None => self.wait_for_outcome(request, call).await,
                }
            }
        }
    }

    /// Suspends the call and returns the questions to the client.
    fn suspend_call(
        &self,
        request: CallRequest,
        running: SuspendableCall,
        awaited: AwaitedInput,
    ) -> HandlerResult {
        let questions = match &awaited {
            AwaitedInput::Approval(pending) => {
                approval_request(pending, self.connection.approval_scope())?
            }
            AwaitedInput::Questions(questions) => questions.to_input_requests()?,
        };
        let suspended = SuspendedCall { running: running.spawn(), awaited };
        let handle = self.connection.server.suspended_calls.suspend(request, suspended)?;
        let result = InputRequiredResult::new(Some(questions), Some(handle));
        self.connection.result(ProtocolEra::Modern, ServerResult::InputRequiredResult(result))
    }
}

/// Which form a result has.
#[derive(Clone, Copy)]
pub(super) struct ResultSupport {
    era: ProtocolEra,
    blocks: ContentSupport,
    ui: UiSupport,
}

impl ResultSupport {
    /// Returns the form for the client of this request.
    fn new(cx: &RequestContext) -> Self {
        Self { era: cx.era(), blocks: cx.content_support(), ui: cx.client.ui }
    }
}

/// Returns the form for an approval as a question to the client.
pub(super) fn approval_request(
    pending: &PendingRequest,
    scope: GrantScope,
) -> Result<InputRequests, ErrorData> {
    let form = approval_form::build_approval_form(pending.request(), scope)?;
    let question = InputRequest::Elicitation(ElicitRequest::new(form));
    Ok([(APPROVAL_KEY.to_owned(), question)].into())
}

/// An unknown tool is a protocol error and not a failed call.
fn unknown_tool(outcome: &Outcome) -> ErrorData {
    ErrorData::invalid_params(outcome.text().into_owned(), None)
}

/// Returns the client's answer to the approval question, if there is one.
pub(super) fn approval_answer(answers: &InputResponses) -> Option<ElicitResult> {
    ElicitResult::deserialize(answers.get(APPROVAL_KEY)?).ok()
}

/// The outcome of a call, which has none if its runtime ended it.
pub(super) type OutcomeFuture = Pin<Box<dyn Future<Output = Option<Outcome>> + Send>>;

/// A running call that may span several requests.
pub(super) struct SuspendableCall {
    pub(super) id: CallId,
    /// The tools as they were when the call came.
    pub(super) view: Arc<ToolsetView>,
    pub(super) outcome: OutcomeFuture,
    pub(super) cancel: LazyCancelToken,
    pub(super) cancel_on_drop: CancelOnDrop,
    pub(super) approvals: ApprovalReceiver,
    pub(super) questions: QuestionReceiver,
    /// When it becomes a task; `None` for a call whose client waits for the result.
    pub(super) trigger: Option<TaskTrigger>,
}

/// What the call did.
enum CallStep {
    NeedsInput(AwaitedInput),
    /// Its tool runs, and needs input or takes a moment.
    BecomesTask(Option<AwaitedInput>),
    Finished(Outcome),
}

impl SuspendableCall {
    /// Runs the call until it has finished or needs input. Cancels it when the request is
    /// cancelled.
    async fn next_step(&mut self, request: &LazyCancelToken) -> Result<CallStep, ErrorData> {
        let outcome = tokio::select! {
            biased;
            // First, because it notes whether the tool runs.
            () = wait_for_trigger(&mut self.trigger) => return Ok(CallStep::BecomesTask(None)),
            Some(pending) = self.approvals.recv() => {
                return Ok(self.needs_input(AwaitedInput::Approval(pending)));
            }
            Some(questions) = self.questions.recv() => {
                return Ok(self.needs_input(AwaitedInput::Questions(questions)));
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

    /// Returns the step for input: what a running tool asks is asked by its task.
    fn needs_input(&self, awaited: AwaitedInput) -> CallStep {
        match self.trigger.as_ref().is_some_and(TaskTrigger::has_started) {
            true => CallStep::BecomesTask(Some(awaited)),
            false => CallStep::NeedsInput(awaited),
        }
    }

    /// Returns the result of the request for the outcome of the call. A modern client that lacks a
    /// capability gets an error of the protocol.
    pub(super) fn to_result(
        &self,
        outcome: Outcome,
        tool: &str,
        support: ResultSupport,
    ) -> Result<CallToolResult, ErrorData> {
        if support.era == ProtocolEra::Modern
            && let Err(failed) = &outcome.result
            && let Some(kind) = self.questions.missing_capability(failed)
        {
            return Err(missing_capability_error(kind));
        }
        let Some(definition) = self.view.definition(tool) else {
            return Err(unknown_tool(&outcome));
        };
        let mut result =
            to_call_result(outcome, definition, (support.era, support.blocks), support.ui);
        if support.era == ProtocolEra::Legacy {
            // Legacy clients do not know it.
            result.result_type = None;
        }
        Ok(result)
    }

    /// Lets the call run on between two requests: approvals and questions have time limits.
    fn spawn(self) -> Self {
        let running = tokio::spawn(self.outcome);
        Self { outcome: Box::pin(async move { running.await.ok().flatten() }), ..self }
    }
}

async fn wait_for_trigger(trigger: &mut Option<TaskTrigger>) {
    match trigger {
        Some(trigger) => trigger.wait().await,
        None => std::future::pending().await,
    }
}

/// Returns the arguments in a form that does not depend on white space.
pub(super) fn normalize_arguments(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(arguments) => arguments.to_string(),
        Err(_) => arguments.to_owned(),
    }
}
