//! An audit log of every decision and every run, and a hook that records more.
//!
//! The pipeline writes the audit log itself: a call whose decision cannot be written does not run,
//! which a hook could not guarantee. A hook is for what the host wants to record besides.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tool_sdk::{
    AuditLog, Call, Hook, HookContext, HookPriority, OnError, Output, Pipeline, Redactor, Registry,
    Rule, Session, ToolError, tool,
};

/// Send a letter.
#[tool(write)]
fn send_letter(
    /// The recipient.
    to: String,
) -> Result<String, ToolError> {
    match to.as_str() {
        "nobody" => Err(ToolError::not_found("nobody lives nowhere")),
        to => Ok(format!("sent to {to}")),
    }
}

/// Records each call that took long.
#[derive(Clone, Default)]
struct Slow {
    limit: Duration,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Hook for Slow {
    async fn after(
        &self,
        call: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let elapsed = call.elapsed().unwrap_or_default();
        if elapsed >= self.limit {
            let ended = result.as_ref().map_or_else(|error| error.kind().as_str(), |_| "ok");
            let line = format!("{} {}: {ended}", call.id(), call.definition().name);
            self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
        Ok(())
    }

    /// It only observes.
    fn on_error(&self) -> OnError {
        OnError::Ignore
    }
}

fn pipeline(
    registry: Registry,
    log: &Path,
    slow: Slow,
) -> Result<Pipeline, Box<dyn std::error::Error>> {
    Ok(Pipeline::new(registry)
        .rules(["allow send_letter".parse::<Rule>()?, "deny send_letter(to: king)".parse()?])
        .audit(AuditLog::open(log, Redactor::from_env())?)
        .hook("*", HookPriority::LOGGING, slow))
}

/// Sends three letters; returns the audit records, and the lines of the hook.
async fn three_letters(registry: Registry) -> Result<[String; 2], Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let (log, slow) = (folder.path().join("audit.jsonl"), Slow::default());
    let pipeline = pipeline(registry, &log, slow.clone())?;
    for (id, to) in [("1", "ada"), ("2", "nobody"), ("3", "king")] {
        let call = Call::new("send_letter", format!(r#"{{"to": "{to}"}}"#)).id(id);
        pipeline.call(&Session::new("example").with_user("bob"), call).await;
    }
    let lines = slow.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
    Ok([std::fs::read_to_string(log)?, lines])
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [records, lines] = three_letters(Registry::linked()?).await?;
    println!("{records}\n{lines}");
    Ok(())
}

// F68, F91
#[cfg(test)]
#[tokio::test]
async fn decisions_and_runs_are_in_the_log() {
    let registry = Registry::builder().add(tool_sdk::tools![send_letter]).build().unwrap();
    let [records, lines] = three_letters(registry).await.unwrap();
    let records: Vec<serde_json::Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |call: &str, key: &str| -> Vec<_> {
        records.iter().filter(|it| it["call"] == call).map(|it| it[key].to_string()).collect()
    };
    assert_eq!(of("1", "what"), [r#""decided""#, r#""ran""#]);
    assert_eq!(of("2", "outcome"), ["null", r#""not_found""#]);
    assert_eq!(of("3", "decision"), [r#""deny""#]);
    assert_eq!(of("1", "fingerprint")[0], of("1", "fingerprint")[1]);
    assert_eq!(lines, "1 send_letter: ok\n2 send_letter: not_found");
}
