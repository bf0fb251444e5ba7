//! Who is told of the hooks that answer an ask before anybody is shown it.

use std::sync::{Arc, Weak};

#[cfg(feature = "hooks")]
use serde_json::Value;

use super::core::Core;
use crate::call::CallId;
#[cfg(feature = "hooks")]
use crate::call::RawArgs;
use crate::context::Session;
use crate::event::EventKind;
use crate::hook::HookRun;
use crate::name::ToolName;
use crate::permission::{Mode, Witness};
#[cfg(feature = "hooks")]
use crate::tool::Wording;

/// The subscribers of a pipeline, for as long as there is one.
pub(super) struct Subscribers {
    core: Weak<Core>,
    session: Session,
    tool: ToolName,
    call: CallId,
}

impl Subscribers {
    /// Those who are told of `call`.
    pub(super) fn of(
        core: &Arc<Core>,
        session: &Session,
        tool: &ToolName,
        call: &CallId,
    ) -> Arc<Self> {
        let (session, tool, call) = (session.clone(), tool.clone(), call.clone());
        Arc::new(Self { core: Arc::downgrade(core), session, tool, call })
    }

    fn tell(&self, kind: EventKind) {
        if let Some(core) = self.core.upgrade() {
            core.tell(&self.session, &self.tool, &self.call, kind);
        }
    }
}

impl Witness for Subscribers {
    fn began(&self, hook: &str) {
        self.tell(EventKind::HookStarted { hook: hook.to_owned() });
    }

    fn ended(&self, hook: String, outcome: String, elapsed_ms: u64) {
        self.tell(EventKind::HookFinished(HookRun { hook, outcome, elapsed_ms }));
    }

    fn session(&self) -> &Session {
        &self.session
    }

    fn mode(&self) -> Mode {
        // Where nobody makes calls any more, nothing is done without asking.
        self.core.upgrade().map_or(Mode::Strict, |core| core.mode(&self.session))
    }

    #[cfg(feature = "hooks")]
    fn forbidden_names(&self) -> Vec<String> {
        let Some(core) = self.core.upgrade() else { return Vec::new() };
        let view = core.toolset.view_for(&self.session);
        let Some(tool) = view.get(self.tool.as_str()) else { return Vec::new() };
        let own = tool.definition().forbidden_names().map(str::to_owned);
        own.chain(view.namesakes(tool.definition()).iter().map(ToString::to_string)).collect()
    }

    #[cfg(feature = "hooks")]
    fn wording(&self, arguments: &Value) -> Wording {
        let Some(core) = self.core.upgrade() else { return Wording::default() };
        let view = core.toolset.view_for(&self.session);
        let Some(tool) = view.get(self.tool.as_str()) else { return Wording::default() };
        Wording::of(&**tool, &RawArgs::new(arguments.to_string()), &self.session)
    }
}
