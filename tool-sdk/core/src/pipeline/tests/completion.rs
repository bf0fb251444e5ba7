//! Calls whose facts only another program knows: completed before they are decided, described as
//! data, and bound to a fingerprint.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::call::RawArgs;
use crate::permission::{Action, ScriptedApprover};
use crate::tool::{
    CompletionFuture, ExecutionPermit, InvalidArgs, OutputFuture, PreparedCall, Resource,
};

/// A tool whose calls learn later what they touch.
struct LateTool {
    definition: Definition,
    /// What a call touches, or why that cannot be known.
    touches: Result<&'static str, &'static str>,
    completions: Arc<AtomicUsize>,
}

impl LateTool {
    fn new(touches: Result<&'static str, &'static str>) -> (Self, Arc<AtomicUsize>) {
        let completions = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&completions);
        (Self { definition: definition("late"), touches, completions }, counted)
    }
}

impl Tool for LateTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(&self, _: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        let completions = Arc::clone(&self.completions);
        Ok(Box::new(LateCall { touches: self.touches, known: None, completions }))
    }
}

struct LateCall {
    touches: Result<&'static str, &'static str>,
    known: Option<&'static str>,
    completions: Arc<AtomicUsize>,
}

impl PreparedCall for LateCall {
    fn complete(&mut self, _: &Context) -> Option<CompletionFuture<'_>> {
        if self.known.is_some() {
            return None;
        }
        Some(Box::pin(async move {
            tokio::task::yield_now().await;
            self.completions.fetch_add(1, Ordering::Relaxed);
            self.known = Some(self.touches.map_err(ToolError::unavailable)?);
            Ok(())
        }))
    }

    fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
        Box::pin(async move { Ok(Output::text(self.known.unwrap_or("nothing"))) })
    }

    fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
        Some(vec![Resource::new(self.known?)])
    }
}

fn late_pipeline(touches: Result<&'static str, &'static str>) -> (Pipeline, Arc<AtomicUsize>) {
    let (tool, completions) = LateTool::new(touches);
    (Pipeline::new(Registry::builder().add(tool).build().unwrap()), completions)
}

fn deny(rule: &str) -> Rule {
    Rule::parse(Action::Deny, rule).unwrap()
}

#[tokio::test]
async fn rules_see_what_a_call_learnt_and_it_learns_once() {
    for (rule, is_allowed) in [("late(shed)", false), ("late(house)", true)] {
        let (pipeline, completions) = late_pipeline(Ok("shed"));
        let outcome = call(&pipeline.rules([deny(rule)]), Call::new("late", "{}")).await;
        assert_eq!(outcome.result.is_ok(), is_allowed, "{rule}");
        assert_eq!(completions.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_completed_does_not_run() {
    let (pipeline, _) = late_pipeline(Err("no worker answers"));
    let error = call(&pipeline, Call::new("late", "{}")).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let session = Session::new("s");
    let error = pipeline.check(&session, Call::new("late", "{}")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_bound_call_runs_only_as_it_was_described() {
    let (pipeline, _) = late_pipeline(Ok("shed"));
    let session = Session::new("s");
    let facts = pipeline.describe(&session, Call::new("late", "{}")).await.unwrap();
    assert_eq!(facts.resources, Some(vec![Resource::new("shed")]));

    let same = Call::new("late", "{}").bound_to(facts.fingerprint.clone());
    assert_eq!(pipeline.call(&session, same).await.text(), "shed");
    let other = Call::new("late", r#"{"text": "x"}"#).bound_to(facts.fingerprint);
    let error = pipeline.call(&session, other).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn another_call_than_the_bound_one_is_not_asked_about() {
    let (pipeline, _) = late_pipeline(Ok("shed"));
    let approver = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
    let ask = Rule::parse(Action::Ask, "late").unwrap();
    let pipeline = pipeline.rules([ask]).shared_approver(Arc::clone(&approver) as _);
    let session = Session::new("s");
    let facts = pipeline.describe(&session, Call::new("late", "{}")).await.unwrap();
    let other = Call::new("late", r#"{"text": "x"}"#).bound_to(facts.fingerprint.clone());
    let error = pipeline.call(&session, other).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("it is not the call that was approved"), "{error}");
    assert_eq!(approver.requests().len(), 0);
    let same = Call::new("late", "{}").bound_to(facts.fingerprint);
    assert_eq!(pipeline.call(&session, same).await.text(), "shed");
    assert_eq!(approver.requests().len(), 1);
}

#[tokio::test]
async fn a_denied_call_is_not_described() {
    let (pipeline, _) = late_pipeline(Ok("shed"));
    let pipeline = pipeline.rules([deny("late(shed)")]);
    let described = pipeline.describe(&Session::new("s"), Call::new("late", "{}")).await;
    assert_eq!(described.unwrap_err().kind(), ErrorKind::Denied);
}
