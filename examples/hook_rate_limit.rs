//! A hook before and after the call: it limits how many calls a session makes in a minute.
//!
//! `observe` counts every call: also calls of unknown tools, with invalid arguments, and denied
//! ones, which never reach `before`. So a model that guesses is limited as well.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tool_sdk::{
    Call, Hook, HookContext, HookDecision, HookPriority, Outcome, Pipeline, Registry, Session,
    ToolError, tool,
};

/// Look up the price of an article.
#[tool(read)]
fn look_up_price(
    /// The number of the article.
    #[arg(range = 1..=99)]
    article: u32,
) -> String {
    format!("article {article} costs {} euros", article * 2)
}

/// The calls of the current minute of each session.
struct RateLimit {
    calls_per_minute: usize,
    recent: Mutex<HashMap<String, Vec<Instant>>>,
}

impl RateLimit {
    fn new(calls_per_minute: usize) -> Self {
        Self { calls_per_minute, recent: Mutex::default() }
    }

    /// Returns how many calls the session made within the last minute, after adding `more`.
    fn count(&self, session: &str, more: Option<Instant>) -> usize {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = recent.entry(session.to_owned()).or_default();
        calls.retain(|at| at.elapsed() < Duration::from_secs(60));
        calls.extend(more);
        calls.len()
    }
}

impl Hook for RateLimit {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(match self.count(call.session().id(), None) < self.calls_per_minute {
            true => HookDecision::none(),
            false => HookDecision::deny("too many calls; wait a minute before the next one"),
        })
    }

    fn observe(&self, call: &HookContext<'_>, _: &Outcome) {
        // A nested call is part of the call that made it.
        if call.parent().is_none() {
            self.count(call.session().id(), Some(Instant::now()));
        }
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pipeline =
        Pipeline::new(Registry::linked()?).hook("*", HookPriority::SECURITY, RateLimit::new(3));
    let (hasty, patient) = (Session::new("hasty"), Session::new("patient"));
    for (session, tool, arguments, expected) in [
        (&hasty, "look_up_price", r#"{"article": 100}"#, "must be between 1 and 99"),
        (&hasty, "look_up_prize", r#"{"article": 7}"#, "there is no tool"),
        (&hasty, "look_up_price", r#"{"article": 7}"#, "costs 14 euros"),
        (&hasty, "look_up_price", r#"{"article": 8}"#, "too many calls"),
        (&patient, "look_up_price", r#"{"article": 8}"#, "costs 16 euros"),
    ] {
        let outcome = pipeline.call(session, Call::new(tool, arguments)).await;
        println!("{}", outcome.text());
        assert!(outcome.text().contains(expected), "{} lacks {expected}", outcome.text());
    }
    Ok(())
}

// F36, F68
#[cfg(test)]
#[test]
fn a_session_that_guesses_is_limited_as_well() {
    main().expect("what it shows holds");
}
