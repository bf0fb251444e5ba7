//! Research with scripted models.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk::agent::{
    AgentCatalog, ModelClient, ModelError, ModelEvent, ModelRequest, ScriptedModel, SpendingBudget,
    SpendingLimits, SubagentModel, SubagentService,
};
use tool_sdk::provider::ModelMessage;
use tool_sdk::{Call, Outcome, Pipeline, Registry, Session, Toolset, tools};

use super::findings::{ResearchFinding, add_sources, collect_sources};
use super::plan::parse_plan;
use super::{deep_research, researcher};

#[test]
fn a_plan_is_read_as_people_and_models_write_lists() {
    let plan = "Here:\n\n1. What is it?\n2) Who made it?\n- **When**?\n---\n* Where?\nWhy?";
    assert_eq!(parse_plan(plan, 5), ["What is it?", "Who made it?", "**When**?", "Where?", "Why?"]);
    assert!(parse_plan("1.\n--", 4).is_empty());
}

#[test]
fn addresses_are_collected_once_and_in_order() {
    let finding = |answer: &str| ResearchFinding {
        question: String::new(),
        answer: answer.to_owned(),
        problem: None,
    };
    let findings = [
        finding("It is so (https://a.example/x), and [so](http://b.example/y_z). https://"),
        finding("See https://a.example/x. Also <https://c.example>!"),
    ];
    let sources = ["https://a.example/x", "http://b.example/y_z", "https://c.example"];
    assert_eq!(collect_sources(&findings), sources);
}

#[test]
fn an_answer_ends_with_what_it_cites() {
    let sources = ["https://a.example".to_owned(), "https://b.example".to_owned()];
    let answer = add_sources("It is so [2]; see [there](https://x.example).", &sources);
    assert!(answer.ends_with("\n\n[2] https://b.example"), "{answer}");
    let answer = add_sources("It is so [1, 3].", &sources);
    assert!(answer.ends_with("[3] names no source.\n\n[1] https://a.example"), "{answer}");
    let answer = add_sources("It is so.", &sources);
    assert!(answer.ends_with("[1] https://a.example\n[2] https://b.example"), "{answer}");
}

/// A model that answers by what its task is, and counts how many of its requests wait at once.
#[derive(Clone, Default)]
struct ResearchModel {
    waiting: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl ModelClient for ResearchModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn respond(
        &self,
        request: &ModelRequest<'_>,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<ModelMessage, ModelError> {
        let task = request.transcript.last_user_text().unwrap_or_default();
        let scripted = ScriptedModel::new();
        let scripted = match task {
            _ if task.contains("# Findings") => scripted.says("Both are named [1] [2]."),
            _ if task.contains("Split the question") => {
                scripted.says("1. What is red?\n2. What is blue?\n3. What is far?")
            }
            "What is far?" => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                scripted.calls(&[("call-1", "web_search", json!({ "queries": ["far"] }))])
            }
            _ if task.contains("The time is up") => scripted.says("Half: https://far.example."),
            _ => {
                let waiting = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
                self.most.fetch_max(waiting, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                scripted.says(match task {
                    "What is red?" => "Roses: https://red.example.",
                    _ => "The sea: https://blue.example.",
                })
            }
        };
        scripted.respond(request, events).await
    }
}

/// Calls the tool with a budget for all agents.
async fn research(model: &ResearchModel, arguments: Value, limits: SpendingLimits) -> Outcome {
    let catalog = AgentCatalog::built_in().with_agent(researcher());
    let registry = Registry::builder().add(tools![deep_research]).build().unwrap();
    let pipeline = Pipeline::new(catalog.add_to(Toolset::new(registry)).unwrap());
    let model = model.clone();
    let choose = move |_: Option<&str>| Ok(SubagentModel::new(model.clone()));
    let subagents = SubagentService::new(pipeline.clone(), catalog, choose)
        .with_budget(SpendingBudget::new(limits));
    let session = Session::new("s").with_service(Some(subagents));
    pipeline.call(&session, Call::new("deep_research", arguments.to_string())).await
}

// F162
#[tokio::test(start_paused = true)]
async fn parts_are_researched_side_by_side_and_cited() {
    let model = ResearchModel::default();
    let arguments = json!({
        "question": "Which colours?", "parts": ["What is red?", "What is blue?"],
    });
    let outcome = research(&model, arguments, SpendingLimits::default()).await;
    let text = "Both are named [1] [2].\n\n[1] https://red.example\n[2] https://blue.example";
    assert_eq!(outcome.text(), text);
    assert_eq!(model.most.load(Ordering::SeqCst), 2, "at once");
    let result: Value = outcome.result.unwrap().into_json().parse().unwrap();
    assert_eq!(result["complete"], true);
    assert_eq!(result["findings"][1]["question"], "What is blue?");
}

// F162: what is found when the time runs out is kept, also of the agent that still works.
#[tokio::test(start_paused = true)]
async fn research_that_is_cut_off_returns_what_it_has() {
    let arguments = json!({ "question": "Which colours?", "minutes": 5 });
    let outcome = research(&ResearchModel::default(), arguments, SpendingLimits::default()).await;
    let text = outcome.text();
    assert!(text.starts_with("The research is incomplete: the time ran out.\n\nBoth"), "{text}");
    let result: Value = outcome.result.unwrap().into_json().parse().unwrap();
    assert_eq!(result["complete"], false);
    assert_eq!(result["findings"][2]["answer"], "Half: https://far.example.");
    assert_eq!(result["sources"][2], "https://far.example");
}

// F162: without a budget there is an error that says so, and no answer that looks like one.
#[tokio::test(start_paused = true)]
async fn a_spent_budget_ends_the_research() {
    let limits = SpendingLimits { max_tokens: Some(0), ..SpendingLimits::default() };
    let arguments = json!({ "question": "Which colours?" });
    let outcome = research(&ResearchModel::default(), arguments, limits).await;
    let error = outcome.result.unwrap_err().to_string();
    assert!(error.starts_with("nothing was found: "), "{error}");
    assert!(error.contains("token"), "{error}");
}

#[tokio::test]
async fn a_host_without_agents_is_told_so() {
    let registry = Registry::builder().add(tools![deep_research]).build().unwrap();
    let arguments = json!({ "question": "Which colours?" }).to_string();
    let call = Call::new("deep_research", arguments);
    let outcome = Pipeline::new(registry).call(&Session::new("s"), call).await;
    assert!(outcome.text().contains("there are no agents here"), "{}", outcome.text());
}
