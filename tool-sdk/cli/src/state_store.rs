//! The store in the state folder: what sessions get from it, and the commands about it.
//!
//! **Invariant:** nothing is created before a tool or a command needs it.

use std::sync::Arc;

use tokio::sync::OnceCell;
use tool_sdk_core::internal::DynConversationStore;
use tool_sdk_core::{
    MemoryHandle, MemoryOwner, Pipeline, PlanStoreHandle, Redactor, Session, SessionRecorder,
    ToolError,
};
use tool_sdk_store::SqliteStore;

use super::exit::{CommandError, FAILED, Result};
use super::imported_conversations::ImportedConversations;
use super::run_loop;
use super::settings::Settings;

/// Returns the store in the state folder. Where there is no state folder, each use of it fails.
pub(super) fn open_store(settings: &Settings) -> SqliteStore {
    settings.state_dir.clone().map_or_else(SqliteStore::unavailable, SqliteStore::in_folder)
}

/// Returns the store of the conversations; `None` without a state folder.
pub(super) fn open_conversations(settings: &Settings) -> Option<Arc<dyn DynConversationStore>> {
    let files = settings.state_dir.as_ref()?.join("chats");
    Some(Arc::new(ImportedConversations {
        store: open_store(settings),
        files,
        redactor: settings.secret_store().redactor().clone(),
        imported: OnceCell::new(),
    }))
}

/// Provides memory and plans to a session.
pub(super) fn attach_stores(session: Session, settings: &Settings) -> Session {
    let store = open_store(settings);
    let memory = MemoryHandle::new(store.clone());
    let memory = match project_of(settings) {
        Some(project) => memory.with_project(project),
        None => memory,
    };
    let session = session.with_service(memory);
    match settings.state_dir {
        Some(_) => session.with_service(PlanStoreHandle::from_store(store)),
        // A plan is for one session, which can keep it in memory.
        None => session,
    }
}

/// Records the calls of the pipeline if the settings say so, without what `redactor` finds.
pub(super) fn record_sessions(
    pipeline: Pipeline,
    settings: &Settings,
    redactor: Redactor,
) -> Result<Pipeline> {
    if !settings.record_sessions {
        return Ok(pipeline);
    }
    if settings.state_dir.is_none() {
        return Err(no_state_folder());
    }
    SessionRecorder::attach(pipeline, open_store(settings), redactor)
        .map_err(|error| CommandError::config(format_args!("cannot record sessions: {error}")))
}

/// Returns the owner of the notes of the user in this workspace.
pub(super) fn memory_owner(settings: &Settings) -> MemoryOwner {
    MemoryOwner { user: None, project: project_of(settings) }
}

/// Returns the project: the path of the first root, which also identifies the workspace of
/// approvals.
fn project_of(settings: &Settings) -> Option<String> {
    let root = settings.roots.first()?;
    let real = root.canonicalize().unwrap_or_else(|_| root.clone());
    Some(real.to_string_lossy().into_owned())
}

/// Returns a note for the user if calls in these roots are in plan mode, which a tool may have
/// entered in an earlier program.
pub(super) fn plan_mode_note(settings: &Settings) -> Option<String> {
    let (session, plans) = session_plans(settings)?;
    let loaded = run_loop::block_on(plans.load(&session));
    match loaded.ok()? {
        Ok(plan) => {
            plan.draft?;
            Some(PLAN_MODE_IS_ON.to_owned())
        }
        Err(error) => Some(format!("only tools that read may run: {error}")),
    }
}

/// What the user should know of plan mode.
const PLAN_MODE_IS_ON: &str =
    "on, because a tool entered it: only tools that read may run; `state end-plan` ends it";

/// Ends plan mode of calls in these roots. Returns whether they were in it.
pub(super) fn end_plan_mode(settings: &Settings) -> Result<bool> {
    let (session, plans) = session_plans(settings).ok_or_else(no_state_folder)?;
    let ended = run_loop::block_on(async {
        if plans.load(&session).await?.draft.is_none() {
            return Ok(false);
        }
        let change = plans
            .update(&session, |plan| {
                plan.draft = None;
                Ok(())
            })
            .await?;
        Ok(change.before.draft.is_some())
    })?;
    ended.map_err(|error: ToolError| CommandError::new(FAILED, error))
}

/// Returns the session of calls in these roots, and where its plan is kept.
fn session_plans(settings: &Settings) -> Option<(Session, Arc<PlanStoreHandle>)> {
    let session = attach_stores(settings.new_session(), settings);
    let plans = session.service::<PlanStoreHandle>()?;
    Some((session, plans))
}

/// Runs a command on the store, on a runtime of its own.
pub(super) fn with_store<T, F: Future<Output = std::io::Result<T>>>(
    settings: &Settings,
    work: impl FnOnce(SqliteStore) -> F,
) -> Result<T> {
    if settings.state_dir.is_none() {
        return Err(no_state_folder());
    }
    run_loop::block_on(work(open_store(settings)))?
        .map_err(|error| CommandError::new(FAILED, ToolError::failed(&error)))
}

fn no_state_folder() -> CommandError {
    CommandError::config("there is no state folder").hint("`--state-dir` or HOME sets it")
}
