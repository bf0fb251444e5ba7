//! Tests of plan mode: what a session may do in it, and what a restart leaves.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::call::Call;
use crate::context::{Context, Session};
use crate::error::{ErrorKind, ToolError};
use crate::permission::Mode;
use crate::pipeline::Pipeline;
use crate::plan_store::{MemoryPlanStore, PlanStore, PlanStoreHandle, SessionPlan};
use crate::registry::Registry;
use crate::{tool, tools};

/// Start planning.
#[tool(read, register = false)]
async fn start(cx: &Context) -> Result<String, ToolError> {
    let change = cx.enter_plan_mode("first draft", "end").await?;
    Ok(change.after.draft.map(|draft| draft.mode_before.to_string()).unwrap_or_default())
}

/// End planning.
#[tool(read, register = false)]
async fn end(cx: &Context) -> Result<(), ToolError> {
    let draft = cx.session().plan_draft().ok_or_else(|| ToolError::failed("no draft"))?;
    cx.leave_plan_mode(&draft).await.map(|_| ())
}

/// Change something.
#[tool(write, register = false)]
fn change() {}

/// Look at something.
#[tool(read, register = false)]
fn look() {}

fn pipeline() -> Pipeline {
    let tools = tools![start, end, change, look];
    let registry = Registry::builder().add(tools).build().unwrap();
    Pipeline::new(registry).mode(Mode::Bypass)
}

async fn kind(pipeline: &Pipeline, session: &Session, tool: &'static str) -> Option<ErrorKind> {
    pipeline.call(session, Call::new(tool, "{}")).await.result.err().map(|error| error.kind())
}

/// A store that two programs use, one after the other.
#[derive(Clone, Default)]
struct SharedStore(Arc<(MemoryPlanStore, AtomicBool)>);

impl PlanStore for SharedStore {
    async fn load_plan(&self, key: &str) -> io::Result<SessionPlan> {
        match self.0.1.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the disk is gone")),
            false => PlanStore::load_plan(&self.0.0, key).await,
        }
    }

    async fn save_plan(&self, key: &str, plan: SessionPlan) -> io::Result<Option<u64>> {
        PlanStore::save_plan(&self.0.0, key, plan).await
    }

    async fn remove_plan(&self, key: &str) -> io::Result<()> {
        PlanStore::remove_plan(&self.0.0, key).await
    }
}

fn session_with(store: &SharedStore) -> Session {
    Session::new("s1").with_service(PlanStoreHandle::from_store(store.clone()))
}

// F155
#[tokio::test]
async fn plan_mode_holds_for_all_clones_until_it_is_left() {
    let (pipeline, session) = (pipeline(), Session::new("s1"));
    assert_eq!(kind(&pipeline, &session, "change").await, None);
    let started = pipeline.call(&session, Call::new("start", "{}")).await;
    assert_eq!(started.text(), "bypass");
    let clone = session.clone().with_request("r7");
    assert_eq!(kind(&pipeline, &clone, "change").await, Some(ErrorKind::Denied));
    assert_eq!(kind(&pipeline, &clone, "look").await, None);
    assert_eq!(kind(&pipeline, &clone, "start").await, Some(ErrorKind::Conflict));
    assert_eq!(kind(&pipeline, &Session::new("s2"), "change").await, None, "another session");
    assert_eq!(kind(&pipeline, &clone, "end").await, None);
    assert_eq!(kind(&pipeline, &session, "change").await, None);
    assert_eq!(kind(&pipeline, &session, "end").await, Some(ErrorKind::Failed));
}

// F155: a program that dies in plan mode continues in plan mode.
#[tokio::test]
async fn a_new_program_continues_in_plan_mode() {
    let store = SharedStore::default();
    assert_eq!(kind(&pipeline(), &session_with(&store), "start").await, None);
    let (next, session) = (pipeline(), session_with(&store));
    assert_eq!(kind(&next, &session, "change").await, Some(ErrorKind::Denied));
    assert_eq!(session.plan_draft().unwrap().text, "first draft");
    assert_eq!(kind(&next, &session, "end").await, None);
    assert_eq!(kind(&pipeline(), &session_with(&store), "change").await, None);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_allows_reading_only() {
    let store = SharedStore::default();
    let (pipeline, session) = (pipeline(), session_with(&store));
    store.0.1.store(true, Ordering::Relaxed);
    assert_eq!(kind(&pipeline, &session, "change").await, Some(ErrorKind::Denied));
    assert_eq!(kind(&pipeline, &session, "look").await, None);
    store.0.1.store(false, Ordering::Relaxed);
    assert_eq!(kind(&pipeline, &session, "change").await, None, "it can be read again");
}

#[tokio::test]
async fn another_draft_than_the_approved_one_is_not_left() {
    let session = Session::new("s1");
    let name = crate::name::ToolName::from_static("t");
    let cx = Context::new(session.clone(), name, crate::call::CallId::generate());
    cx.enter_plan_mode("a", "end").await.unwrap();
    let approved = session.plan_draft().unwrap();
    cx.update_plan_draft("b").await.unwrap();
    let error = cx.leave_plan_mode(&approved).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(session.plan_draft().unwrap().text, "b");
}

// The user ends plan mode at any time; a store that keeps the draft forgets it.
#[tokio::test]
async fn the_user_ends_plan_mode() {
    let store = SharedStore::default();
    let (first, session) = (pipeline(), session_with(&store));
    assert_eq!(kind(&first, &session, "start").await, None);
    let (next, session) = (pipeline(), session_with(&store));
    let draft = next.load_plan_draft(&session).await.unwrap();
    assert_eq!(draft.unwrap().text, "first draft");
    store.0.1.store(true, Ordering::Relaxed);
    assert!(next.end_plan_mode(&session).await.is_err());
    assert_eq!(kind(&next, &session, "change").await, Some(ErrorKind::Denied));
    store.0.1.store(false, Ordering::Relaxed);
    assert_eq!(next.end_plan_mode(&session).await.unwrap().unwrap().text, "first draft");
    assert_eq!(kind(&next, &session, "change").await, None);
    assert_eq!(next.end_plan_mode(&session).await.unwrap(), None);
    assert_eq!(kind(&pipeline(), &session_with(&store), "change").await, None);
}
