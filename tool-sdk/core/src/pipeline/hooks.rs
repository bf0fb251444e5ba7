//! Runs hooks: before a call is authorized, after its tool has run, and on every outcome.
//!
//! **Invariant:** a hook that fails, panics or exceeds its time limit never turns into an allow.
//! A panic or timeout of a hook is a failure of that hook and of nothing else.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::approval::{ApprovedEdit, CallChange};
use super::execute::{ContainedFuture, cancelled_error};
use super::inner::PipelineInner;
use super::invocation::{DecodedCall, Invocation, wait_for_cancellation};
use super::truncate;
use crate::audit::ArgumentEdit;
use crate::call::{Call, CallId, CallOrigin, Outcome, RawArgs};
use crate::content::Output;
use crate::context::Session;
use crate::error::{ErrorKind, ToolError};
use crate::event::{EventCall, EventKind, millis};
use crate::hook::{
    DecisionDetails, HookCallView, HookContext, HookDecision, HookRun, HookVerdict, OnError,
    RegisteredHook,
};
use crate::name::ToolName;
use crate::permission::{Action, CallRewrite, DecisionSource, Mode, PolicyOverride};
use crate::tool::ExternalArgNames;
use crate::tool::{Definition, PreparedCall, Tool, ToolLabel};

type HookResult<T> = Result<T, ToolError>;

impl Invocation<'_> {
    /// Runs the before-hooks in the order of their priority.
    ///
    /// # Errors
    ///
    /// Fails when a hook fails whose errors deny the call, when it rewrites the arguments to
    /// invalid ones, and when the call is cancelled.
    pub(super) async fn run_before_hooks(&mut self, call: &mut DecodedCall) -> HookResult<()> {
        if !self.has_hooks() {
            return Ok(());
        }
        self.enter_stage("before_hooks");
        if let Err(error) = self.consult_hooks(call).await {
            return Err(self.record_refusal(&*call.prepared, error));
        }
        self.stop_batch_when_halted();
        self.reset_clock();
        Ok(())
    }

    /// Runs the before-hooks without recording a refusal.
    pub(super) async fn consult_hooks(&mut self, call: &mut DecodedCall) -> HookResult<()> {
        let hooks = self.inner.current_hooks();
        for hook in hooks.iter() {
            if !hook.applies_to(self.definition()) {
                continue;
            }
            let decision = {
                let view = self.hook_view(None);
                let context = HookContext::new(&view);
                run_hook(&view, hook, async { hook.hook.before(&context).await }).await?
            };
            let details = match decision {
                Ok(decision) => decision.into_details(),
                Err(_) if hook.on_error == OnError::Ignore => None,
                Err(error) => {
                    let reason =
                        format!("{}, so the call is refused", describe_failure(hook, &error));
                    return Err(ToolError::denied(reason).source(error));
                }
            };
            if let Some(details) = details
                && self.apply_decision(hook, *details, call)? == Next::Stop
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Applies a hook's decision about the call.
    fn apply_decision(
        &mut self,
        hook: &RegisteredHook,
        decision: DecisionDetails,
        call: &mut DecodedCall,
    ) -> HookResult<Next> {
        self.hook_context.extend(decision.context);
        let action = match decision.verdict {
            HookVerdict::None => None,
            HookVerdict::Allow => hook.may_allow(self.definition()).then_some(Action::Allow),
            HookVerdict::Ask => Some(Action::Ask),
            HookVerdict::Deny | HookVerdict::Halt => Some(Action::Deny),
        };
        if decision.verdict == HookVerdict::Halt {
            self.metadata.halt_reason = Some(decision.reason.clone());
        }
        let name = &hook.name;
        if let Some(action) = action {
            let reason = match (decision.sentence, decision.reason.as_str()) {
                (Some(sentence), _) => sentence,
                (None, "") => format!("the hook `{name}` says so"),
                (None, reason) => format!("the hook `{name}` says: {reason}"),
            };
            call.add_override(PolicyOverride { action, source: DecisionSource::Hook, reason });
        }
        if action == Some(Action::Deny) {
            return Ok(Next::Stop);
        }
        if let Some(arguments) = decision.arguments {
            let (name, names) = match decision.rewritten_by {
                None => (Cow::Borrowed(&**name), vec![name.to_string()]),
                Some(by) => (Cow::Owned(by), decision.rewriters),
            };
            self.rewrite_call(arguments, &name, names, call)?;
            if action == Some(Action::Allow) {
                call.add_override(PolicyOverride::allow_rewrite(&name));
            }
        }
        Ok(Next::Continue)
    }

    /// Applies a change that an approval request led to, and lets the before-hooks see the new
    /// call.
    pub(super) async fn apply_change(
        &mut self,
        change: CallChange,
        call: &mut DecodedCall,
    ) -> HookResult<()> {
        let result = self.change_and_consult(change, call).await;
        if let Err(error) = result {
            return Err(self.record_refusal(&*call.prepared, error));
        }
        self.stop_batch_when_halted();
        Ok(())
    }

    async fn change_and_consult(
        &mut self,
        change: CallChange,
        call: &mut DecodedCall,
    ) -> HookResult<()> {
        call.overrides.retain(|decided| decided.source != DecisionSource::Loop);
        match change {
            CallChange::Rewrite(rewrite) => self.apply_rewrite(rewrite, call)?,
            CallChange::Edit(edit) => self.apply_edit(edit, call)?,
        }
        self.reset_loop_guard();
        self.check_cancelled()?;
        self.consult_hooks(call).await
    }

    /// Applies a rewrite that a hook made in place of an answer.
    fn apply_rewrite(&mut self, rewrite: CallRewrite, call: &mut DecodedCall) -> HookResult<()> {
        let CallRewrite { patch, hook: by, hook_names: changers, policy_override } = rewrite;
        let mut arguments: Map<String, Value> =
            serde_json::from_str(self.arguments()).map_err(|error| {
                let message = format!("the hook `{by}` changed arguments that are not an object");
                ToolError::denied(message).source(error)
            })?;
        arguments.extend(patch);
        self.rewrite_call(Value::Object(arguments).to_string(), &by, changers, call)?;
        call.is_rewrite_used = true;
        if let Some(policy_override) = policy_override {
            call.add_override(policy_override);
        }
        Ok(())
    }

    /// Applies the arguments with which a person approved the call.
    fn apply_edit(&mut self, edit: ApprovedEdit, call: &mut DecodedCall) -> HookResult<()> {
        self.rewritten = Some(edit.arguments.clone());
        let edited = self.decode_args()?;
        self.replace_call(edited, call);
        // Of several edits, the first one started from what the model sent.
        let from = self.edit.take().map_or_else(|| edit.audit.from.clone(), |first| first.from);
        self.edit = Some(ArgumentEdit { from, ..edit.audit.clone() });
        call.edit = Some(edit);
        Ok(())
    }

    /// Replaces the call with one whose arguments a hook wrote.
    fn rewrite_call(
        &mut self,
        arguments: String,
        hook: &str,
        names: Vec<String>,
        call: &mut DecodedCall,
    ) -> HookResult<()> {
        self.rewrite_args(arguments, names);
        let rewritten = self.decode_args().map_err(|error| {
            let why = error.message();
            let message = format!("the hook `{hook}` changed the arguments to invalid ones: {why}");
            ToolError::denied(message).source(error)
        })?;
        self.replace_call(rewritten, call);
        Ok(())
    }

    /// Replaces the call with one of other arguments. Earlier hooks allowed another call, so what
    /// they allowed is void.
    fn replace_call(&self, changed: Box<dyn PreparedCall>, call: &mut DecodedCall) {
        call.overrides.retain(|decided| decided.action != Action::Allow);
        let before = std::mem::replace(&mut call.prepared, changed);
        call.original.get_or_insert(before);
    }

    /// Runs the after-hooks, which see the result and may change it, in the order of their
    /// priority.
    ///
    /// When the call is cancelled before all hooks have seen the result, the result is discarded.
    pub(super) async fn run_after_hooks(
        &mut self,
        mut result: Result<Output, ToolError>,
    ) -> Result<Output, ToolError> {
        if !self.has_run {
            return result;
        }
        self.hook_context.extend(self.edit.as_ref().map(ArgumentEdit::describe));
        if !self.has_hooks() {
            append_context(&std::mem::take(&mut self.hook_context), &mut result);
            return result;
        }
        self.enter_stage("after_hooks");
        let halted = {
            let view = self.hook_view(Some(self.started.elapsed()));
            let context = HookContext::new(&view);
            let hooks = self.inner.current_hooks();
            for hook in hooks.iter().filter(|hook| hook.applies_to(view.tool.definition())) {
                let fallback = match hook.on_error {
                    OnError::Ignore => Some(copy_result(&result)),
                    OnError::Deny => None,
                };
                let after = async { hook.hook.after(&context, &mut result).await };
                match run_hook(&view, hook, after).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        result = fallback.unwrap_or_else(|| Err(withheld_result(hook, error)));
                    }
                    Err(cancelled) => {
                        return Err(cancelled.hint("the tool has run; its effect is not undone"));
                    }
                }
            }
            view.halt_reason.into_inner()
        };
        if let Some(reason) = halted {
            self.metadata.halt_reason.get_or_insert(reason);
        }
        append_context(&std::mem::take(&mut self.hook_context), &mut result);
        self.stop_batch_when_halted();
        result
    }

    /// Notifies the observing hooks of the outcome. A panic of an observer changes nothing.
    pub(super) fn notify_observers(&self, outcome: &Outcome) {
        if !self.has_hooks() {
            return;
        }
        let view = self.hook_view(Some(self.started.elapsed()));
        let context = HookContext::new(&view);
        let hooks = self.inner.current_hooks();
        for hook in hooks.iter().filter(|hook| hook.applies_to(self.definition())) {
            let observe = || hook.hook.observe(&context, outcome);
            let _ = catch_unwind(AssertUnwindSafe(observe));
        }
    }

    /// Whether a hook sees calls of the tool.
    fn has_hooks(&self) -> bool {
        self.inner.current_hooks().iter().any(|hook| hook.applies_to(self.definition()))
    }

    /// Returns the call as hooks see it; `elapsed` is how long the tool ran, once it has.
    fn hook_view(&self, elapsed: Option<Duration>) -> HookView<'_> {
        HookView {
            inner: self.inner,
            session: self.session,
            call: self.call,
            tool: &self.tool,
            label: &self.label,
            origin: &self.origin,
            arguments: self.raw_args(),
            elapsed,
            halt_reason: OnceLock::new(),
        }
    }
}

/// Whether further before-hooks are consulted.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

/// What a callback of a hook returns, as its event describes it.
trait HookAnswer {
    fn describe(&self) -> String;
}

impl HookAnswer for HookDecision {
    fn describe(&self) -> String {
        self.to_string()
    }
}

impl HookAnswer for () {
    fn describe(&self) -> String {
        "done".to_owned()
    }
}

/// Runs one callback of a hook: emits its events, contains its panics, enforces its time limit.
///
/// # Errors
///
/// The outer error is the cancellation of the call, the inner one the failure of the hook.
async fn run_hook<T: HookAnswer>(
    view: &HookView<'_>,
    hook: &RegisteredHook,
    callback: impl Future<Output = HookResult<T>> + Send,
) -> Result<HookResult<T>, ToolError> {
    view.emit(|| EventKind::HookStarted { hook: hook.name.to_string() });
    let started = Instant::now();
    let limit = hook.time_limit.unwrap_or(Duration::MAX);
    let mut running = ContainedFuture::new(Box::pin(callback));
    let answer = tokio::select! {
        biased;
        answer = &mut running => Some(answer),
        () = view.cancelled() => None,
        // In a block, so that the timer is only created for a hook that waits.
        () = async { tokio::time::sleep(limit).await } => {
            Some(Err(ToolError::timeout(format_args!("no answer within {limit:?}"))))
        }
    };
    let outcome = match &answer {
        Some(Ok(answer)) => answer.describe(),
        Some(Err(error)) => format!("failed: {error}"),
        None => format!("failed: {}", cancelled_error()),
    };
    view.emit(|| {
        let elapsed_ms = millis(started.elapsed());
        EventKind::HookFinished(HookRun { hook: hook.name.to_string(), outcome, elapsed_ms })
    });
    answer.ok_or_else(cancelled_error)
}

/// A call as hooks see it, before it is authorized or after its tool has run.
struct HookView<'a> {
    inner: &'a Arc<PipelineInner>,
    session: &'a Session,
    call: &'a Call<'a>,
    tool: &'a Arc<dyn Tool>,
    label: &'a Arc<ToolLabel>,
    origin: &'a CallOrigin,
    /// The current arguments.
    arguments: &'a RawArgs<'a>,
    /// How long the tool ran, once it has.
    elapsed: Option<Duration>,
    /// Why the model's turn ends with this call, if an after-hook said so.
    halt_reason: OnceLock<String>,
}

impl HookView<'_> {
    fn emit(&self, kind: impl FnOnce() -> EventKind) {
        if self.inner.bus.has_subscribers() {
            let about = EventCall { session: self.session, tool: self.label, origin: self.origin };
            let arguments = [self.call.arguments.text(), self.arguments.text()];
            self.inner.emit(0, about, kind(), &arguments);
        }
    }

    async fn cancelled(&self) {
        wait_for_cancellation(self.inner, self.session, self.call).await;
    }
}

impl HookCallView for HookView<'_> {
    fn session(&self) -> &Session {
        self.session
    }

    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn id(&self) -> &CallId {
        &self.origin.id
    }

    fn parent(&self) -> Option<&CallId> {
        self.origin.parent_id()
    }

    fn original_arguments(&self) -> &str {
        self.call.arguments.text()
    }

    fn arguments(&self) -> &str {
        self.arguments.text()
    }

    fn mode(&self) -> Mode {
        self.inner.mode(self.session)
    }

    fn has_approver(&self) -> bool {
        self.inner.approver_of(self.session).is_some()
    }

    fn permission_tool_names(&self) -> Vec<ToolName> {
        self.inner.toolset.view_for(self.session).namesakes(self.definition())
    }

    fn external_arg_names(&self) -> ExternalArgNames {
        ExternalArgNames::for_call(&**self.tool, self.arguments, self.session)
    }

    fn elapsed(&self) -> Option<Duration> {
        self.elapsed
    }

    fn halt_turn(&self, reason: String) {
        // A before-hook ends the turn with its decision.
        if self.elapsed.is_some() {
            self.halt_reason.get_or_init(|| reason);
        }
    }

    fn emit_warning(&self, message: String) {
        self.inner.warn(self.session, &self.definition().name, self.origin, message);
    }

    fn emit_started(&self, hook: &str) {
        self.emit(|| EventKind::HookStarted { hook: hook.to_owned() });
    }

    fn emit_finished(&self, run: HookRun) {
        self.emit(|| EventKind::HookFinished(run));
    }

    fn store_text(&self, text: &str) -> Option<PathBuf> {
        truncate::store_output(self.inner, self.session, &self.origin.id, text)?.ok()
    }
}

fn describe_failure(hook: &RegisteredHook, error: &ToolError) -> String {
    let how = match error.kind() {
        ErrorKind::Timeout => "did not answer in time",
        _ => "failed",
    };
    format!("the hook `{}` {how}", hook.name)
}

/// Returns the error that replaces a result when a hook failed to check it.
fn withheld_result(hook: &RegisteredHook, error: ToolError) -> ToolError {
    let failure = describe_failure(hook, &error);
    ToolError::failed(format_args!("{failure}, so the result is not shown"))
        .hint("the tool has run; its effect is not undone")
        .source(error)
}

/// Copies a result; of an error, the parts that the model reads.
fn copy_result(result: &Result<Output, ToolError>) -> Result<Output, ToolError> {
    match result {
        Ok(output) => Ok(output.clone()),
        Err(error) => {
            let copy = ToolError::new(error.kind(), error.message());
            Err(match error.suggestion() {
                Some(hint) => copy.hint(hint),
                None => copy,
            })
        }
    }
}

/// Appends to the result what hooks want the model to read with it.
fn append_context(context: &[String], result: &mut Result<Output, ToolError>) {
    if context.is_empty() {
        return;
    }
    let context = context.join("\n\n");
    match result {
        Ok(output) => {
            let text = format!("{}\n\n{context}", output.as_text());
            output.replace_text(text);
        }
        Err(error) => error.append(&context),
    }
}
