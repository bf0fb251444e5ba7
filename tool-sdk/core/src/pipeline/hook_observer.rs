//! Emits events for hooks that answer an approval request before the user is shown it.

use std::sync::{Arc, Weak};

use serde_json::Value;

use super::inner::PipelineInner;
use crate::call::{CallOrigin, RawArgs};
use crate::context::Session;
use crate::event::EventKind;
use crate::hook::HookRun;
use crate::name::ToolName;
use crate::permission::{HookObserver, Mode};
use crate::tool::ExternalArgNames;

/// Emits events of hooks of one call, as long as the pipeline exists.
pub(super) struct EventHookObserver {
    inner: Weak<PipelineInner>,
    session: Session,
    tool: ToolName,
    origin: CallOrigin,
}

impl EventHookObserver {
    /// Returns the observer for the call `origin`.
    pub(super) fn for_call(
        inner: &Arc<PipelineInner>,
        session: &Session,
        tool: &ToolName,
        origin: &CallOrigin,
    ) -> Arc<Self> {
        let (session, tool, origin) = (session.clone(), tool.clone(), origin.clone());
        Arc::new(Self { inner: Arc::downgrade(inner), session, tool, origin })
    }

    fn emit(&self, kind: EventKind) {
        if let Some(inner) = self.inner.upgrade() {
            inner.emit_for(&self.session, &self.tool, &self.origin, kind);
        }
    }
}

impl HookObserver for EventHookObserver {
    fn hook_started(&self, hook: &str) {
        self.emit(EventKind::HookStarted { hook: hook.to_owned() });
    }

    fn hook_finished(&self, hook: String, outcome: String, elapsed_ms: u64) {
        self.emit(EventKind::HookFinished(HookRun { hook, outcome, elapsed_ms }));
    }

    fn session(&self) -> &Session {
        &self.session
    }

    fn mode(&self) -> Mode {
        // Without a pipeline, the strictest mode holds.
        self.inner.upgrade().map_or(Mode::Strict, |inner| inner.mode(&self.session))
    }

    fn forbidden_names(&self) -> Vec<String> {
        let Some(inner) = self.inner.upgrade() else { return Vec::new() };
        let view = inner.toolset.view_for(&self.session);
        let Some(tool) = view.get(self.tool.as_str()) else { return Vec::new() };
        let own = tool.definition().forbidden_names().map(str::to_owned);
        own.chain(view.namesakes(tool.definition()).iter().map(ToString::to_string)).collect()
    }

    fn external_arg_names(&self, arguments: &Value) -> ExternalArgNames {
        let Some(inner) = self.inner.upgrade() else { return ExternalArgNames::default() };
        let view = inner.toolset.view_for(&self.session);
        let Some(tool) = view.get(self.tool.as_str()) else { return ExternalArgNames::default() };
        ExternalArgNames::for_call(&**tool, &RawArgs::new(arguments.to_string()), &self.session)
    }
}
