//! The plan and the todo list of a session.
//!
//! Tools that plan read and write a [`SessionPlan`] through the [`PlanStoreHandle`] of their
//! session. The host attaches a [`PlanStore`]; without one, each session keeps its plan in memory.
//!
//! **Invariant:** a plan is saved only over the version that was loaded, so that no writer loses
//! the changes of another one.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::context::Session;
use crate::error::ToolError;
use crate::permission::Mode;

/// How often an update is tried again after another writer was faster.
const MAX_ATTEMPTS: usize = 16;

/// What a session plans: the steps of its plan, its todo list, and the draft of plan mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "stores construct plans")]
pub struct SessionPlan {
    /// How often the plan was saved; 0 for a session without a saved plan.
    #[serde(default)]
    pub version: u64,
    /// Why the steps changed, in the model's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The steps, in order.
    #[serde(default)]
    pub steps: Vec<PlanStep>,
    /// The todo list, in order.
    #[serde(default)]
    pub todos: Vec<TodoItem>,
    /// The draft of plan mode; present while the session is in plan mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<PlanDraft>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "tools construct steps")]
pub struct PlanStep {
    /// What is done.
    pub step: String,
    /// How far the step is.
    pub status: TodoStatus,
}

/// One entry of a todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "tools construct entries")]
pub struct TodoItem {
    /// The id, which stays the same when the list changes.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// How urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<TodoPriority>,
}

/// How far a step or an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "tools name every variant in their schema")]
pub enum TodoStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

/// How urgent an entry of a todo list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "tools name every variant in their schema")]
pub enum TodoPriority {
    /// First.
    High,
    /// In between.
    Medium,
    /// Last.
    Low,
}

/// The plan that a model writes in plan mode, before the user approves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "tools construct drafts")]
pub struct PlanDraft {
    /// The mode in which the session was before plan mode.
    pub mode_before: Mode,
    /// The text of the plan, Markdown.
    #[serde(default)]
    pub text: String,
    /// The name of the tool that ends plan mode, for refusals; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exit_tool: String,
}

/// Keeps the plans of sessions.
///
/// # Examples
///
/// ```
/// use tool_sdk::{MemoryPlanStore, PlanStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryPlanStore::default();
/// let mut plan = store.load_plan("s1").await?;
/// assert_eq!(plan.version, 0);
///
/// plan.explanation = Some("start with the tests".to_owned());
/// assert_eq!(store.save_plan("s1", plan.clone()).await?, Some(1));
///
/// // The version 0 is no longer the stored one, so nothing is saved.
/// assert_eq!(store.save_plan("s1", plan).await?, None);
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait PlanStore: Send + Sync + 'static {
    /// Returns the plan that was saved under `key`, or an empty one of version 0. A
    /// [`PlanStoreHandle`] makes the key from the session's id and user.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    fn load_plan(&self, key: &str) -> impl Future<Output = io::Result<SessionPlan>> + Send;

    /// Saves `plan` under `key` when the stored version is still [`SessionPlan::version`], and
    /// increments the version. Returns the new version, or `None` when another writer saved a plan
    /// since this one was loaded; the stored plan is unchanged then.
    ///
    /// A plan is on disk when the future completes, where the store has a disk.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written; the stored plan is unchanged then.
    fn save_plan(
        &self,
        key: &str,
        plan: SessionPlan,
    ) -> impl Future<Output = io::Result<Option<u64>>> + Send;

    /// Removes the plan that was saved under `key`, if any.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be written.
    fn remove_plan(&self, key: &str) -> impl Future<Output = io::Result<()>> + Send;
}

/// A [`PlanStore`] behind a pointer; implemented for every store.
#[doc(hidden)]
pub trait DynPlanStore: Send + Sync + 'static {
    fn load_plan<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<SessionPlan>>;
    fn save_plan<'a>(
        &'a self,
        key: &'a str,
        plan: SessionPlan,
    ) -> BoxFuture<'a, io::Result<Option<u64>>>;
    fn remove_plan<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<()>>;
}

impl<S: PlanStore> DynPlanStore for S {
    fn load_plan<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<SessionPlan>> {
        Box::pin(PlanStore::load_plan(self, key))
    }

    fn save_plan<'a>(
        &'a self,
        key: &'a str,
        plan: SessionPlan,
    ) -> BoxFuture<'a, io::Result<Option<u64>>> {
        Box::pin(PlanStore::save_plan(self, key, plan))
    }

    fn remove_plan<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(PlanStore::remove_plan(self, key))
    }
}

/// Keeps plans in memory, until they are removed or the program ends.
#[derive(Default)]
pub struct MemoryPlanStore(Mutex<HashMap<String, SessionPlan>>);

impl MemoryPlanStore {
    /// A poisoned lock still guards whole plans: no operation panics half-way.
    fn lock_plans(&self) -> MutexGuard<'_, HashMap<String, SessionPlan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryPlanStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPlanStore").field("plans", &self.lock_plans().len()).finish()
    }
}

impl PlanStore for MemoryPlanStore {
    async fn load_plan(&self, key: &str) -> io::Result<SessionPlan> {
        Ok(self.lock_plans().get(key).cloned().unwrap_or_default())
    }

    async fn save_plan(&self, key: &str, mut plan: SessionPlan) -> io::Result<Option<u64>> {
        let mut plans = self.lock_plans();
        if plans.get(key).map_or(0, |stored| stored.version) != plan.version {
            return Ok(None);
        }
        plan.version += 1;
        let version = plan.version;
        plans.insert(key.to_owned(), plan);
        Ok(Some(version))
    }

    async fn remove_plan(&self, key: &str) -> io::Result<()> {
        self.lock_plans().remove(key);
        Ok(())
    }
}

/// The plan store of a session, as tools use it. A session without a store of the host has one in
/// memory.
///
/// # Examples
///
/// ```
/// use tool_sdk::{MemoryPlanStore, PlanStoreHandle, Session};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = PlanStoreHandle::from_store(MemoryPlanStore::default());
/// let session = Session::new("s1").with_service(store);
///
/// let plans = session.extension::<PlanStoreHandle>();
/// let change = plans
///     .update(&session, |plan| {
///         plan.explanation = Some("start with the tests".to_owned());
///         Ok(())
///     })
///     .await?;
/// assert_eq!((change.before.version, change.after.version), (0, 1));
/// # Ok::<(), tool_sdk::ToolError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PlanStoreHandle(Arc<dyn DynPlanStore>);

/// A saved change of a plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanChange {
    /// The plan before the change.
    pub before: SessionPlan,
    /// The plan after the change, with its new version.
    pub after: SessionPlan,
}

impl Default for PlanStoreHandle {
    fn default() -> Self {
        Self::from_store(MemoryPlanStore::default())
    }
}

impl fmt::Debug for PlanStoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlanStoreHandle")
    }
}

impl PlanStoreHandle {
    /// Wraps `store`.
    #[must_use]
    pub fn from_store(store: impl PlanStore) -> Self {
        Self(Arc::new(store))
    }

    /// Returns the plan of `session`, or an empty one.
    ///
    /// # Errors
    ///
    /// Fails with kind `unavailable` when the store cannot be read.
    pub async fn load(&self, session: &Session) -> Result<SessionPlan, ToolError> {
        self.0.load_plan(&session_key(session)).await.map_err(|error| read_error(&error))
    }

    /// Changes the plan of `session` and saves it. `change` runs again, on a fresh plan, when
    /// another writer was faster.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`, and nothing is saved then. Fails with kind `unavailable` when
    /// the store cannot be read or written, and with kind `conflict` for an [ephemeral
    /// session](Session::with_ephemeral_state), and when other writers were faster 16 times.
    pub async fn update(
        &self,
        session: &Session,
        mut change: impl FnMut(&mut SessionPlan) -> Result<(), ToolError> + Send,
    ) -> Result<PlanChange, ToolError> {
        if session.is_ephemeral() {
            return Err(ToolError::conflict(
                "the session ends with this call, and its plan with it",
            )
            .hint(
                "make the calls of a conversation in one session; over HTTP, send its `Session-Id`",
            ));
        }
        let key = session_key(session);
        for _ in 0..MAX_ATTEMPTS {
            let before = self.0.load_plan(&key).await.map_err(|error| read_error(&error))?;
            let mut after = before.clone();
            change(&mut after)?;
            after.version = before.version;
            let saved = self.0.save_plan(&key, after.clone()).await;
            if let Some(version) = saved.map_err(|error| write_error(&error))? {
                after.version = version;
                return Ok(PlanChange { before, after });
            }
        }
        Err(ToolError::conflict("another call changes the plan of this session all the time")
            .hint("call again"))
    }
}

/// Returns the key of a session's plan. The length of the user's name keeps the keys of different
/// users apart.
fn session_key(session: &Session) -> String {
    match session.user_key() {
        Some(user) => format!("{}:{user}:{}", user.len(), session.id()),
        None => format!(":{}", session.id()),
    }
}

fn read_error(error: &io::Error) -> ToolError {
    ToolError::unavailable(format_args!("the plan of the session cannot be read: {error}"))
}

fn write_error(error: &io::Error) -> ToolError {
    ToolError::unavailable(format_args!("the plan of the session cannot be saved: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{MemoryPlanStore, PlanStoreHandle, session_key};
    use crate::ErrorKind;
    use crate::context::Session;

    #[test]
    fn keys_of_different_users_differ() {
        let session = Session::new("s1");
        let keys = [
            session_key(&session),
            session_key(&session.clone().with_shared_server()),
            session_key(&session.clone().with_user("ada")),
            session_key(&Session::new("a:s1").with_user("ad")),
            session_key(&Session::new("ada:s1")),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{keys:?}");
        }
    }

    #[tokio::test]
    async fn update_runs_again_when_another_writer_was_faster() {
        let plans = PlanStoreHandle::from_store(MemoryPlanStore::default());
        let session = Session::new("s1");
        let mut is_first = true;
        let change = plans
            .update(&session, |plan| {
                if std::mem::take(&mut is_first) {
                    let other = plans.update(&session, |plan| {
                        plan.explanation = Some("other".to_owned());
                        Ok(())
                    });
                    futures_util::FutureExt::now_or_never(other).unwrap().unwrap();
                }
                plan.explanation.get_or_insert_default().push_str(" and this");
                Ok(())
            })
            .await
            .unwrap();
        assert_eq!(change.after.explanation.as_deref(), Some("other and this"));
        assert_eq!(change.after.version, 2);
    }

    #[tokio::test]
    async fn the_plan_of_an_ephemeral_session_cannot_be_changed() {
        let plans = PlanStoreHandle::from_store(MemoryPlanStore::default());
        let session = Session::new("once-1").with_ephemeral_state();
        let error = plans.update(&session, |_| Ok(())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("Session-Id"), "{error}");
    }

    #[cfg(feature = "testing")]
    #[tokio::test]
    async fn the_store_in_memory_passes_the_checks() {
        crate::testing::check_plan_store(&MemoryPlanStore::default()).await;
    }
}
