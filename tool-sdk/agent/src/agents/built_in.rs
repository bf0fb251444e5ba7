//! The agents that need no file.

use tool_sdk_core::{AgentProfile, Mode};

use super::definition::{AgentDefinition, AgentOrigin, AgentUsage};

/// Returns `build`, `plan` and `explore`.
pub(super) fn built_in_agents() -> [AgentDefinition; 3] {
    let agent = |profile: AgentProfile, description: &str, prompt: &str| {
        let mut agent = AgentDefinition::new(profile, description).with_prompt(prompt);
        agent.origin = AgentOrigin::BuiltIn;
        agent
    };
    [
        agent(AgentProfile::new("build"), "Does the work: reads, changes files, runs commands", ""),
        agent(
            AgentProfile::new("plan").mode(Mode::Plan),
            "Looks around and makes a plan; changes nothing",
            "Make a plan for what the user wants: what is to be changed where, in which order, and how \
             it is checked. Read what you need for it. You change nothing. Ask when the goal is not \
             clear.",
        )
        .with_usage(AgentUsage::Primary),
        agent(
            AgentProfile::new("explore").mode(Mode::Explore),
            "Searches and reads to answer a question about the project; changes nothing",
            "Answer the question by searching and reading. Begin broadly, then look at what matters. \
             Name each place as `path:line`. Say what you did not find. The agent or user who asked \
             sees only your answer.",
        ),
    ]
}
