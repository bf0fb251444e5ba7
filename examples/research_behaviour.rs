//! A stateful object of a host as tools: research in phases.
//!
//! `ResearchDesk` is a state machine: plan, collect, write, done. Its methods are tools of `#[toolset]`,
//! and the host keeps the object. They change nothing else, so they run without approval, like tools that
//! read. A hook offers the model only the tools of the current phase. A tool of
//! another phase, which a model may remember, refuses and says what to do.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_sdk::{
    Call, Definition, Hook, Outcome, Pipeline, Registry, Session, ToolError, Toolset, toolset,
};

/// How far the research is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResearchPhase {
    /// The question is not fixed yet.
    #[default]
    Plan,
    /// Sources are collected.
    Collect,
    /// The answer is written.
    Write,
    /// The answer is final.
    Done,
}

impl fmt::Display for ResearchPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plan => "plan",
            Self::Collect => "collect",
            Self::Write => "write",
            Self::Done => "done",
        })
    }
}

/// The tools of each phase, besides those for every phase.
const PHASE_TOOLS: [(ResearchPhase, &[&str]); 3] = [
    (ResearchPhase::Plan, &["ask_question"]),
    (ResearchPhase::Collect, &["add_source", "finish_collecting"]),
    (ResearchPhase::Write, &["add_source", "write_answer"]),
];

/// The fewest sources of an answer.
const MIN_SOURCES: usize = 2;

#[derive(Clone, Debug, Default)]
struct ResearchState {
    phase: ResearchPhase,
    question: String,
    sources: Vec<String>,
    answer: String,
}

/// Research, from the question to the answer.
#[derive(Debug, Default)]
struct ResearchDesk(Mutex<ResearchState>);

#[toolset]
impl ResearchDesk {
    /// Fix the question of the research, and begin to collect sources.
    #[tool(read, parallel = exclusive)]
    fn ask_question(
        &self,
        /// The question, one sentence.
        #[arg(length = 10..=300)]
        question: String,
    ) -> Result<String, ToolError> {
        let mut state = self.in_phase("ask_question")?;
        (state.question, state.phase) = (question, ResearchPhase::Collect);
        Ok("Collect sources with `add_source`.".to_owned())
    }

    /// Add a source that answers a part of the question.
    #[tool(read, parallel = exclusive)]
    fn add_source(
        &self,
        /// Its URL.
        #[arg(pattern = "^https://")]
        url: String,
    ) -> Result<String, ToolError> {
        let mut state = self.in_phase("add_source")?;
        if state.sources.contains(&url) {
            return Err(ToolError::conflict(format_args!("`{url}` is a source already"))
                .hint("add another source"));
        }
        state.sources.push(url);
        Ok(format!("Source {}.", state.sources.len()))
    }

    /// Stop collecting sources, and begin to write.
    #[tool(read, parallel = exclusive)]
    fn finish_collecting(&self) -> Result<String, ToolError> {
        let mut state = self.in_phase("finish_collecting")?;
        let missing = MIN_SOURCES.saturating_sub(state.sources.len());
        if missing > 0 {
            return Err(ToolError::failed("there are too few sources")
                .hint(format_args!("add {missing} more with `add_source`")));
        }
        state.phase = ResearchPhase::Write;
        Ok("Write the answer with `write_answer`.".to_owned())
    }

    /// Write the answer, which ends the research.
    #[tool(read, parallel = exclusive)]
    fn write_answer(
        &self,
        /// The answer, with the numbers of its sources in brackets, such as `[1]`.
        answer: String,
    ) -> Result<String, ToolError> {
        let mut state = self.in_phase("write_answer")?;
        let cited = (1..=state.sources.len()).filter(|it| answer.contains(&format!("[{it}]")));
        if cited.count() < MIN_SOURCES {
            return Err(ToolError::invalid_args("the answer cites too few sources")
                .hint(format_args!("cite at least {MIN_SOURCES} of them, such as `[1]`")));
        }
        (state.answer, state.phase) = (answer, ResearchPhase::Done);
        Ok("The research is done.".to_owned())
    }

    /// Show the question, the sources and the phase.
    #[tool(read)]
    fn show_research(&self) -> String {
        let state = self.state();
        let sources: Vec<String> =
            state.sources.iter().zip(1..).map(|(url, at)| format!("[{at}] {url}")).collect();
        format!("{}: {}\n{}", state.phase, state.question, sources.join("\n"))
    }

    /// Returns the state if the tool belongs to the phase, and otherwise says what to do.
    fn in_phase(&self, tool: &str) -> Result<MutexGuard<'_, ResearchState>, ToolError> {
        let state = self.state();
        if is_offered(tool, state.phase) {
            return Ok(state);
        }
        let tools = PHASE_TOOLS.iter().find(|(phase, _)| *phase == state.phase);
        let hint = match tools {
            Some((_, tools)) => format!("use `{}` now", tools.join("` or `")),
            None => "the research is done; tell the user the answer".to_owned(),
        };
        let phase = state.phase;
        Err(ToolError::conflict(format_args!("`{tool}` is no tool of the phase {phase}"))
            .hint(hint))
    }

    fn state(&self) -> MutexGuard<'_, ResearchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the tool is for this phase. What no phase names is for every phase.
fn is_offered(tool: &str, phase: ResearchPhase) -> bool {
    let mut phases = PHASE_TOOLS.iter().filter(|(_, tools)| tools.contains(&tool)).peekable();
    phases.peek().is_none() || phases.any(|(of_tool, _)| *of_tool == phase)
}

/// Hides the tools of other phases from the model. They stay callable, to refuse with a hint.
struct PhaseFilter(Arc<ResearchDesk>);

impl Hook for PhaseFilter {
    fn edit_definition(&self, definition: &mut Definition, _: &Session) -> bool {
        definition.flags.hidden |= !is_offered(definition.name.as_str(), self.0.state().phase);
        true
    }
}

/// A host that keeps the object, and lets a model call its methods.
struct ResearchHost {
    research: Arc<ResearchDesk>,
    pipeline: Pipeline,
    session: Session,
}

impl ResearchHost {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let research = Arc::new(ResearchDesk::default());
        let registry = Registry::builder().add(Arc::clone(&research)).build()?;
        let filter = Arc::new(PhaseFilter(Arc::clone(&research)));
        let pipeline = Pipeline::new(Toolset::new(registry).with_definition_hook("*", filter));
        Ok(Self { research, pipeline, session: Session::new("research") })
    }

    /// Makes a call of the model. A new phase offers other tools.
    async fn call(&self, tool: &str, arguments: &str) -> Outcome {
        let before = self.research.state().phase;
        let outcome = self.pipeline.call(&self.session, Call::new(tool, arguments)).await;
        if self.research.state().phase != before {
            self.pipeline.toolset().refresh();
        }
        outcome
    }

    /// Returns the names of the tools that the model is offered.
    fn offered_tools(&self) -> Vec<String> {
        let view = self.pipeline.toolset().view_for(&self.session);
        view.definitions().map(|definition| definition.name.to_string()).collect()
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = ResearchHost::new()?;
    for (tool, arguments) in [
        ("add_source", r#"{"url": "https://tides.example/1"}"#),
        ("ask_question", r#"{"question": "Why are there two tides a day?"}"#),
        ("add_source", r#"{"url": "https://tides.example/1"}"#),
        ("finish_collecting", "{}"),
        ("add_source", r#"{"url": "https://moon.example/2"}"#),
        ("finish_collecting", "{}"),
        ("write_answer", r#"{"answer": "The moon pulls at both sides [1], unevenly [2]."}"#),
    ] {
        println!("offered: {}", host.offered_tools().join(", "));
        println!("{tool}: {}", host.call(tool, arguments).await.text());
    }
    // The host has the object itself, not only what its tools said.
    println!("the answer: {}", host.research.state().answer);
    Ok(())
}

#[cfg(test)]
mod tests {
    use tool_sdk::ErrorKind;

    use super::*;

    // F164: a stateful object has tools with schemas, and keeps its state; each phase offers its own.
    #[tokio::test]
    async fn each_phase_offers_its_tools_and_others_say_what_to_do() {
        let host = ResearchHost::new().unwrap();
        assert_eq!(host.offered_tools(), ["ask_question", "show_research"]);

        let early = host.call("write_answer", r#"{"answer": "It is so."}"#).await;
        let error = early.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(error.suggestion(), Some("use `ask_question` now"));

        let question = r#"{"question": "Why are there two tides a day?"}"#;
        assert!(host.call("ask_question", question).await.result.is_ok());
        let collecting = ["add_source", "finish_collecting", "show_research"];
        assert_eq!(host.offered_tools(), collecting);

        host.call("add_source", r#"{"url": "https://tides.example/1"}"#).await;
        let few = host.call("finish_collecting", "{}").await.result.unwrap_err();
        assert_eq!(few.suggestion(), Some("add 1 more with `add_source`"));
        assert_eq!(host.offered_tools(), collecting, "a refused call changes nothing");

        host.call("add_source", r#"{"url": "https://moon.example/2"}"#).await;
        host.call("finish_collecting", "{}").await;
        assert_eq!(host.offered_tools(), ["add_source", "show_research", "write_answer"]);
        assert_eq!(host.research.state().sources.len(), 2, "the host has the object");

        host.call("write_answer", r#"{"answer": "By the moon [1], and the sun [2]."}"#).await;
        assert_eq!(host.offered_tools(), ["show_research"]);
        assert_eq!(host.research.state().answer, "By the moon [1], and the sun [2].");
        let late = host.call("add_source", r#"{"url": "https://late.example/"}"#).await;
        assert!(late.result.unwrap_err().suggestion().unwrap().contains("tell the user"));
    }
}
