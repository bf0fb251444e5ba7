//! The task in which an agent works.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tool_sdk_core::Session;

use super::record::SubagentRecord;
use super::{SubagentModel, SubagentPosition, SubagentService};
use crate::agent_loop::AgentLoop;

/// What every agent is told that another one started.
const SUBAGENT_PROMPT: &str = "You work for another agent, which gave you a task. It sees only your \
                               last message: make that the whole answer, with what you did, what you \
                               found, and what is open.";

/// Marks the run as ended when its task is dropped or panics.
struct RunGuard(Arc<SubagentRecord>);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.finish_lost();
    }
}

impl SubagentService {
    /// Runs the agent in a task of its own, until it has answered or `token` is cancelled.
    pub(super) fn run_in_task(
        &self,
        parent: &Session,
        record: &Arc<SubagentRecord>,
        position: &SubagentPosition,
        model: SubagentModel,
        token: &CancellationToken,
    ) {
        let definition = record.definition();
        let budget = position.budget.child(self.0.limits.each).child(definition.limits);
        let own = SubagentPosition { depth: position.depth + 1, budget: budget.clone() };
        let session = parent
            .clone()
            .with_id(record.session_id())
            .with_agent(definition.name())
            .limited_by(parent)
            .with_service(Some(own));
        let agent = self.build_agent(record, model).with_budget(budget);
        let mut transcript = record.take_transcript();
        let (record, token, subagents) = (Arc::clone(record), token.clone(), self.clone());
        tokio::spawn(async move {
            let guard = RunGuard(Arc::clone(&record));
            loop {
                let outcome = agent.run(&session, &mut transcript, &token).await;
                subagents.end_below(record.session_id()).await;
                // A message that came too late for the run begins another one.
                match record.finish_run(&outcome, transcript) {
                    Some(unfinished) => transcript = unfinished,
                    None => break,
                }
            }
            // Ends what waits for the token.
            token.cancel();
            drop(guard);
        });
    }

    fn build_agent(&self, record: &SubagentRecord, model: SubagentModel) -> AgentLoop {
        let definition = record.definition();
        let parts = [self.0.system.as_str(), SUBAGENT_PROMPT, definition.prompt.as_str()];
        let system: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let max_turns = self.0.limits.max_turns;
        let (price, compaction) = (model.price, model.compaction.clone());
        let mut agent = AgentLoop::new(self.0.pipeline.clone(), model)
            .with_system(system.join("\n\n"))
            .with_steering(record.steering().clone())
            .with_max_turns(Some(definition.max_turns.map_or(max_turns, |own| own.min(max_turns))));
        if let Some(effort) = definition.reasoning_effort {
            agent = agent.with_reasoning_effort(effort);
        }
        if let Some(price) = price {
            agent = agent.with_price(price);
        }
        if let Some(policy) = compaction {
            agent = agent.with_compaction(policy);
        }
        agent
    }

    /// Ends the agents that the agent of this session started and left working.
    async fn end_below(&self, session_id: &str) {
        let below: Vec<_> = {
            let records = self.records();
            records.iter().filter(|known| known.parent_session() == session_id).cloned().collect()
        };
        for record in &below {
            record.cancel_run();
        }
        for record in below {
            record.wait_until_ended().await;
        }
    }
}
