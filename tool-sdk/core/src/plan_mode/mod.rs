//! Plan mode of a session: only tools that read may run until the user approves the plan.
//!
//! The draft of the plan is stored with the plan of the session before the mode changes, and
//! removed after the user has approved leaving. The pipeline reads the stored draft before the first
//! call of a session, so that a program that died in plan mode continues in plan mode.
//!
//! **Invariant:** an error on the way leaves the session in the stricter mode.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::context::{Context, Session};
use crate::error::ToolError;
use crate::permission::Mode;
use crate::plan_store::{PlanChange, PlanDraft, PlanStoreHandle};

/// Plan mode of a session, shared by all its clones.
#[derive(Clone, Default)]
struct PlanModeState(Arc<PlanModeInner>);

#[derive(Default)]
struct PlanModeInner {
    draft: Mutex<Option<Arc<PlanDraft>>>,
    /// Set once the stored draft was read.
    is_restored: OnceCell<()>,
}

impl PlanModeState {
    fn of(session: &Session) -> Self {
        session.own_extension()
    }

    fn draft(&self) -> Option<Arc<PlanDraft>> {
        self.0.draft.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_draft(&self, draft: Option<PlanDraft>) {
        *self.0.draft.lock().unwrap_or_else(PoisonError::into_inner) = draft.map(Arc::new);
    }

    /// Sets the draft that was stored just now.
    fn apply(&self, draft: Option<PlanDraft>) {
        self.set_draft(draft);
        // What is stored is known now.
        let _ = self.0.is_restored.set(());
    }
}

/// Plan mode of a session.
impl Session {
    /// Returns the draft of the plan while the session is in plan mode.
    ///
    /// In plan mode the session has the mode [`Mode::Plan`] besides the toolset's mode and that of
    /// [`with_mode`](Self::with_mode): only tools that read may run.
    #[must_use]
    pub fn plan_draft(&self) -> Option<Arc<PlanDraft>> {
        PlanModeState::of(self).draft()
    }

    /// Returns the mode of the session itself: its own, or the stricter mode of plan mode.
    pub(crate) fn own_mode(&self) -> Option<Mode> {
        let set = self.session_rules().and_then(|policy| policy.mode);
        match self.plan_draft() {
            Some(_) => Some(set.map_or(Mode::Plan, |mode| Mode::Plan.stricter(mode))),
            None => set,
        }
    }

    /// Reads the stored draft, once. Until it can be read, the session is in plan mode.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    pub(crate) async fn restore_plan_mode(&self) -> Result<(), ToolError> {
        // A store of the session itself has no older draft.
        let Some(store) = self.services().get::<PlanStoreHandle>() else { return Ok(()) };
        let state = PlanModeState::of(self);
        let restore = async {
            match store.load(self).await {
                Ok(plan) => {
                    state.set_draft(plan.draft);
                    Ok(())
                }
                Err(error) => {
                    state.set_draft(Some(PlanDraft {
                        mode_before: Mode::Auto,
                        text: String::new(),
                        exit_tool: String::new(),
                    }));
                    Err(error)
                }
            }
        };
        state.0.is_restored.get_or_try_init(|| restore).await.map(|_| ())
    }

    /// Ends plan mode without an approval of the plan. Returns the draft, `None` if the session was
    /// not in plan mode.
    ///
    /// # Errors
    ///
    /// Fails like [`PlanStoreHandle::update`]; the session stays in plan mode then.
    pub(crate) async fn end_plan_mode(&self) -> Result<Option<PlanDraft>, ToolError> {
        let plans = self.extension::<PlanStoreHandle>();
        let mut draft = plans.load(self).await?.draft;
        if draft.is_some() {
            let change = plans
                .update(self, |plan| {
                    plan.draft = None;
                    Ok(())
                })
                .await?;
            draft = change.before.draft;
        }
        PlanModeState::of(self).apply(None);
        Ok(draft)
    }
}

/// Plan mode, as tools change it.
impl Context {
    /// Puts the session into plan mode, with `text` as the first draft of the plan. Open approval
    /// requests are evaluated again; commands that run already are not stopped. A refusal in plan mode
    /// names `exit_tool`, the tool that ends it.
    ///
    /// # Errors
    ///
    /// Fails with kind `conflict` when the session is in plan mode, and like
    /// [`PlanStoreHandle::update`]; the mode is unchanged then.
    pub async fn enter_plan_mode(
        &self,
        text: &str,
        exit_tool: &str,
    ) -> Result<PlanChange, ToolError> {
        let mode = self.permission_mode().and_then(|name| name.parse().ok()).unwrap_or_default();
        let draft =
            PlanDraft { mode_before: mode, text: text.to_owned(), exit_tool: exit_tool.to_owned() };
        let change = self
            .update_plan_of_session(|stored| match stored {
                Some(_) => Err(ToolError::conflict("the session is in plan mode already")),
                None => {
                    *stored = Some(draft.clone());
                    Ok(())
                }
            })
            .await?;
        self.apply_plan_mode(Some(draft));
        Ok(change)
    }

    /// Replaces the draft of the plan.
    ///
    /// # Errors
    ///
    /// Fails with kind `conflict` when the session is not in plan mode, and like
    /// [`PlanStoreHandle::update`].
    pub async fn update_plan_draft(&self, text: &str) -> Result<PlanChange, ToolError> {
        let change = self
            .update_plan_of_session(|stored| match stored {
                Some(draft) => {
                    text.clone_into(&mut draft.text);
                    Ok(())
                }
                None => Err(not_in_plan_mode()),
            })
            .await?;
        self.apply_plan_mode(change.after.draft.clone());
        Ok(change)
    }

    /// Ends plan mode: the mode before holds again. `approved` is the draft that the user approved.
    /// A tool that calls this asks the user first.
    ///
    /// # Errors
    ///
    /// Fails with kind `conflict` when the session is not in plan mode or when the draft is another
    /// one now, and like [`PlanStoreHandle::update`]; the session stays in plan mode then.
    pub async fn leave_plan_mode(&self, approved: &PlanDraft) -> Result<PlanChange, ToolError> {
        let change = self
            .update_plan_of_session(|stored| match stored {
                Some(draft) if draft == approved => {
                    *stored = None;
                    Ok(())
                }
                Some(_) => Err(ToolError::conflict("the plan changed while the user was asked")),
                None => Err(not_in_plan_mode()),
            })
            .await?;
        self.apply_plan_mode(None);
        Ok(change)
    }

    async fn update_plan_of_session(
        &self,
        mut change: impl FnMut(&mut Option<PlanDraft>) -> Result<(), ToolError> + Send,
    ) -> Result<PlanChange, ToolError> {
        let plans = self.session().extension::<PlanStoreHandle>();
        plans.update(self.session(), |plan| change(&mut plan.draft)).await
    }

    /// Changes the mode of the session after the draft was stored.
    fn apply_plan_mode(&self, draft: Option<PlanDraft>) {
        PlanModeState::of(self.session()).apply(draft);
        self.notify_mode_change();
    }
}

fn not_in_plan_mode() -> ToolError {
    ToolError::conflict("the session is not in plan mode")
}

#[cfg(test)]
mod tests;
