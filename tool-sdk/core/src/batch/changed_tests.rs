//! Tests how the calls of a batch see what earlier calls of the batch changed.

use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::call::RawArgs;
use crate::content::Output;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::name::ToolName;
use crate::permission::{ApprovalResponse, Rule, ScriptedApprover};
use crate::registry::Registry;
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;
use crate::tool::{
    Definition, ExecutionPermit, InvalidArgs, OutputFuture, PreparedCall, Resource, Tool,
};

/// The text that one tool writes, and that the other tools read or run.
type SharedPage = Arc<Mutex<String>>;

#[derive(Clone, Copy, PartialEq)]
enum PageAction {
    /// Writes the page after a delay.
    Amend,
    /// Reads it.
    Peek,
    /// Runs the page; its content is a fact of the call.
    Obey,
}

struct PageTool {
    definition: Definition,
    does: PageAction,
    page: SharedPage,
}

impl Tool for PageTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        let text = args.text().to_owned();
        Ok(Box::new(PageCall { does: self.does, page: Arc::clone(&self.page), text }))
    }
}

struct PageCall {
    does: PageAction,
    page: SharedPage,
    text: String,
}

impl PageCall {
    fn page_text(&self) -> String {
        self.page.lock().unwrap().clone()
    }
}

impl PreparedCall for PageCall {
    fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
        Box::pin(async move {
            tokio::task::yield_now().await;
            if self.does == PageAction::Amend {
                *self.page.lock().unwrap() = self.text.clone();
            }
            Ok(Output::text(self.page_text()))
        })
    }

    fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
        (self.does == PageAction::Peek).then(|| vec![Resource::new(self.page_text())])
    }

    fn fingerprint_facts(&self, _: &Context) -> Vec<(&'static str, String)> {
        if self.does == PageAction::Obey { vec![("page", self.page_text())] } else { Vec::new() }
    }

    fn concurrency_key(&self) -> Option<String> {
        (self.does == PageAction::Amend).then(|| "page".to_owned())
    }
}

/// Runs a batch of calls over one page; every approval request is approved.
async fn run(rules: &[&str], names: &[&str]) -> Vec<Outcome> {
    let page = SharedPage::default();
    let tool = |name, does, class, parallel| {
        let schema = Schema::from_value(json!({ "type": "object", "properties": {} })).unwrap();
        let definition = Definition::new(ToolName::from_static(name), "Does it.", schema);
        let mut definition = definition.risk(Risk::new(class));
        definition.parallel = Some(parallel);
        PageTool { definition, does, page: Arc::clone(&page) }
    };
    let registry = Registry::builder()
        .add(tool("amend", PageAction::Amend, RiskClass::Write, Parallel::By("page".into())))
        .add(tool("peek", PageAction::Peek, RiskClass::Read, Parallel::Shared))
        .add(tool("obey", PageAction::Obey, RiskClass::Execute, Parallel::Shared));
    let yes = names.iter().map(|_| ApprovalResponse::Once).collect::<Vec<_>>();
    let pipeline = Pipeline::new(registry.build().unwrap())
        .rules(rules.iter().map(|rule| rule.parse::<Rule>().unwrap()))
        .approver(ScriptedApprover::new(yes));
    let calls = names.iter().map(|name| Call::new(*name, r#"{"new": 1}"#));
    Batch::new(&pipeline).run(&Session::new("s"), calls).await
}

fn texts(outcomes: &[Outcome]) -> Vec<&str> {
    outcomes.iter().map(|it| it.result.as_ref().map_or("failed", |it| it.as_text())).collect()
}

// F47: a call after a writer reads what the writer wrote, and a call before it the old text.
#[tokio::test]
async fn a_call_sees_what_the_calls_before_it_wrote() {
    let written = r#"{"new": 1}"#;
    let outcomes = run(&["allow *"], &["peek", "amend", "peek", "obey"]).await;
    assert_eq!(texts(&outcomes), ["", written, written, written]);
}

// Security 2.11: an approval holds for the call that was shown. When an earlier call of the batch
// changes what the call does, the approval is void.
#[tokio::test]
async fn a_yes_does_not_hold_for_what_another_call_made_of_it() {
    let outcomes = run(&["allow amend"], &["obey", "amend", "obey"]).await;
    assert_eq!(texts(&outcomes), ["", r#"{"new": 1}"#, "failed"]);
    let error = outcomes[2].result.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("changed while the call waited for its turn"), "{error}");
}

// Security 2.11: a call that was allowed when the batch arrived, and that by now needs an approval,
// does not run without one.
#[tokio::test]
async fn what_asks_by_now_does_not_run_unasked() {
    let rules = ["allow amend", "ask peek(*new*)"];
    let outcomes = run(&rules, &["peek", "amend", "peek"]).await;
    assert_eq!(texts(&outcomes), ["", r#"{"new": 1}"#, "failed"]);
}
