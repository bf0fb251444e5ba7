//! The actions of rules, one file per tool. They are hidden from models, because rules call them.
//!
//! **Invariant:** an action changes the session alone: no file, no process, no other host.

mod emit_event_tool;
mod inject_context_tool;
mod log_tool;
mod modify_prompt_tool;
mod notify_self_tool;
mod set_state_tool;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tool_sdk::agent::{PromptSections, SteeringQueue};
use tool_sdk::{Context, ToolError};

pub use self::emit_event_tool::emit_event;
pub use self::inject_context_tool::inject_context;
pub use self::log_tool::log;
pub use self::modify_prompt_tool::modify_prompt;
pub use self::notify_self_tool::notify_self;
pub use self::set_state_tool::set_state;

/// How many texts may wait for the agent.
const MAX_WAITING_TEXTS: usize = 100;

/// Returns the queue of texts for the agent of the session.
fn steering_of(cx: &Context) -> Result<Arc<SteeringQueue>, ToolError> {
    let steering = cx.session().service::<SteeringQueue>().ok_or_else(no_agent)?;
    if steering.len() >= MAX_WAITING_TEXTS {
        return Err(ToolError::unavailable(format_args!(
            "{MAX_WAITING_TEXTS} texts wait for the agent already"
        ))
        .hint("the agent reads them with its next request"));
    }
    Ok(steering)
}

/// Returns the sections of the system prompt of the session's agent.
fn sections_of(cx: &Context) -> Result<Arc<PromptSections>, ToolError> {
    cx.session().service::<PromptSections>().ok_or_else(no_agent)
}

fn no_agent() -> ToolError {
    ToolError::config("no agent runs in this session")
        .hint("the tool works in `chat` and `serve acp`, and where a host attaches its agent")
}

/// Returns the text between tags that the text cannot close itself.
fn frame_text(tag: &str, text: &str) -> String {
    let inside = text.trim().replace(&format!("</{tag}"), &format!("<\u{200b}/{tag}"));
    format!("<{tag}>\n{inside}\n</{tag}>")
}
