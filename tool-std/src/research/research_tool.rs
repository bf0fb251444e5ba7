//! The tool `deep_research`.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::time::Instant;
use tool_sdk::agent::{SubagentReport, SubagentService, SubagentStatus};
use tool_sdk::{Context, Output, Resource, ToolError, tool};

use super::RESEARCHER;
use super::findings::{
    ResearchFinding, add_sources, collect_sources, format_findings, writing_task,
};
use super::plan::{parse_plan, planning_task};

/// How long the answer may take after the research.
const WRITING_LIMIT: Duration = Duration::from_secs(180);

/// Research a question on the web with several agents, and return an answer with its sources.
///
/// Use it for questions that need many pages; for one fact a search is faster. The question is split
/// into parts, an agent researches each, and the findings become one answer. When the time or the
/// budget runs out, the answer is made of what was found by then, and says so.
#[tool(
    read,
    open_world,
    register = false,
    category = "web",
    approval(required = |_, _| false, resources = |call, _| vec![Resource::new(call.question.to_owned())]),
    timeout = "2h",
    task = optional,
    display(name = "Research", primary = question, show(question, parts), summary = "Researching {question}"),
    example = r#"{"question": "Which SQLite versions have the WAL-reset bug, and how do other projects deal with it?"}"#
)]
pub async fn deep_research(
    /// The question, complete: the agents see nothing of this conversation.
    #[arg(length = 1..=4000)]
    question: &str,
    /// The parts of the question, if they are known; each has to be understood without the others.
    #[arg(default = vec![], length = ..=8)]
    parts: Vec<String>,
    /// How many parts a question without them is split into at most.
    #[arg(default = 4, range = 1..=8)]
    max_parts: usize,
    /// How long the agents may research, in minutes.
    #[arg(default = 10, range = 1..=60)]
    minutes: u64,
    cx: &Context,
) -> Result<Output, ToolError> {
    let subagents = cx.session().extension::<Option<SubagentService>>().ok_or_else(|| {
        ToolError::config("there are no agents here").hint("search the web yourself")
    })?;
    let research = RunningResearch {
        subagents,
        deadline: Instant::now() + Duration::from_secs(minutes * 60),
        cx,
    };
    let parts = match parts.is_empty() {
        true => research.plan_parts(question, max_parts).await,
        false => parts,
    };
    let findings = research.research_parts(&parts).await;
    research.write_answer(question, findings).await
}

/// One run of the tool.
struct RunningResearch<'a> {
    subagents: SubagentService,
    deadline: Instant,
    cx: &'a Context,
}

impl RunningResearch<'_> {
    /// Splits the question; without a plan the question is researched as it is.
    async fn plan_parts(&self, question: &str, max_parts: usize) -> Vec<String> {
        let mut parts = Vec::new();
        if max_parts > 1 {
            self.cx.progress(0, None, "Planning the research");
            let plan = self.ask_agent(&planning_task(question, max_parts), self.deadline).await;
            parts = parse_plan(&plan.answer, max_parts);
        }
        if parts.is_empty() {
            parts.push(question.to_owned());
        }
        parts
    }

    /// Researches the parts side by side and returns the findings in their order.
    async fn research_parts(&self, parts: &[String]) -> Vec<ResearchFinding> {
        let total = u64::try_from(parts.len()).ok();
        self.cx.progress(0, total, format!("Researching: {}", parts.join(" · ")));
        let mut running: FuturesUnordered<_> = parts
            .iter()
            .enumerate()
            .map(async |(index, part)| (index, self.ask_agent(part, self.deadline).await))
            .collect();
        let mut findings = Vec::new();
        while let Some((index, finding)) = running.next().await {
            findings.push((index, finding));
            let done = u64::try_from(findings.len()).unwrap_or(u64::MAX);
            self.cx.progress(done, total, format!("Researched: {}", parts[index]));
        }
        findings.sort_by_key(|(index, _)| *index);
        findings.into_iter().map(|(_, finding)| finding).collect()
    }

    /// Writes the answer. Without one, the findings themselves are the result.
    async fn write_answer(
        &self,
        question: &str,
        findings: Vec<ResearchFinding>,
    ) -> Result<Output, ToolError> {
        if findings.iter().all(|finding| finding.answer.trim().is_empty()) {
            let problems = findings.iter().filter_map(|it| it.problem.as_deref());
            let problems = problems.collect::<Vec<_>>().join("; ");
            return Err(ToolError::unavailable(format!("nothing was found: {problems}"))
                .hint("search the web yourself, or ask with fewer parts"));
        }
        let sources = collect_sources(&findings);
        self.cx.progress(0, None, "Writing the answer");
        let task = writing_task(question, &findings, &sources);
        let written = self.ask_agent(&task, Instant::now() + WRITING_LIMIT).await;
        let is_written = !written.answer.trim().is_empty();
        let answer = if is_written { written.answer } else { format_findings(&findings) };
        let mut problems: Vec<&str> =
            findings.iter().filter_map(|finding| finding.problem.as_deref()).collect();
        problems.extend(written.problem.as_deref());
        let mut text = add_sources(&answer, &sources);
        if !problems.is_empty() {
            text = format!("The research is incomplete: {}.\n\n{text}", problems.join("; "));
        }
        Ok(Output::text(text).structured(json!({
            "question": question,
            "complete": problems.is_empty(),
            "findings": findings,
            "sources": sources,
        })))
    }

    /// Gives a task to an agent, and returns what it had answered by the deadline.
    async fn ask_agent(&self, task: &str, deadline: Instant) -> ResearchFinding {
        let question = task.to_owned();
        match self.subagents.delegate_until(self.cx, RESEARCHER, task, deadline).await {
            Ok(report) => {
                let problem = find_problem(&report, deadline);
                ResearchFinding { question, answer: report.answer, problem }
            }
            Err(error) => {
                let problem = Some(error.to_string());
                ResearchFinding { question, answer: String::new(), problem }
            }
        }
    }
}

/// Returns why the answer of an agent is missing or only a part.
fn find_problem(report: &SubagentReport, deadline: Instant) -> Option<String> {
    match &report.status {
        _ if Instant::now() >= deadline => Some("the time ran out".to_owned()),
        SubagentStatus::Finished if report.answer.trim().is_empty() => {
            Some("an agent ended without an answer".to_owned())
        }
        SubagentStatus::Finished => None,
        SubagentStatus::Stopped(reason) => Some(format!("an agent stopped: {reason}")),
        _ => Some("an agent was cancelled".to_owned()),
    }
}
