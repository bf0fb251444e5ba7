//! The tool `mutation_status`: shows mutations and their timelines.

use schemars::JsonSchema;
use serde::Serialize;
use tool_sdk::{
    Context, Ledger, MutationLoop, MutationTransaction, Output, ToolError, TypedOutput, tool,
};

use super::format_transaction;

/// Mutations, and whether one more would be blocked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MutationReport {
    /// The mutations, the newest first.
    pub transactions: Vec<MutationTransaction>,
    /// How often the action was made, if one was given.
    pub loop_guard: Option<MutationLoop>,
}

/// Show mutations: one with its timeline, or the last ones, the newest first.
///
/// With `action` the result also tells whether this mutation would be blocked.
#[tool(
    read,
    category = "ledger",
    approval(required = |_, _| false),
    display(name = "Mutations", primary = transaction_id, summary = "Looking at mutations"),
    example = "{}"
)]
pub async fn mutation_status(
    /// The id of one mutation.
    #[arg(length = 1..=64)]
    transaction_id: Option<String>,
    /// The action of `mutation_begin`.
    #[arg(length = 1..=500)]
    action: Option<String>,
    /// How many mutations to show at most.
    #[arg(default = 10, range = 1..=100)]
    limit: usize,
    cx: &Context,
) -> Result<TypedOutput<MutationReport>, ToolError> {
    let ledger = cx.session().extension::<Ledger>();
    let look = move || {
        let found = match &transaction_id {
            Some(id) => vec![ledger.transaction(id)?],
            None => ledger.transactions(limit)?,
        };
        let repeats = action.map(|action| ledger.evaluate_loop_guard(action.trim())).transpose()?;
        Ok::<_, ToolError>((found, repeats, ledger.skipped_lines()))
    };
    let (found, repeats, skipped) = cx.run_blocking(move |_| look()).await?;
    let lines: Vec<String> = found.iter().map(format_transaction).collect();
    let mut text = match found.is_empty() {
        true => "(There are no mutations.)".to_owned(),
        false => lines.join("\n"),
    };
    if let Some(repeats) = &repeats {
        let verdict = if repeats.blocked { "would be blocked" } else { "may be made" };
        text += &format!(
            "\n\nThe action was made {} times in the last {} s, and {verdict}.",
            repeats.recent_count, repeats.window_seconds
        );
    }
    if skipped > 0 {
        text += &format!("\n\n({skipped} damaged lines of the ledger were skipped.)");
    }
    let report = MutationReport { transactions: found, loop_guard: repeats };
    Ok(TypedOutput::new(Output::text(text), report))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tool_sdk::testing::Harness;
    use tool_sdk::{ErrorKind, Session, tools};

    use super::*;
    use crate::ledger::{mutation_begin, mutation_record};

    fn harness(ledger: Ledger) -> Harness {
        Harness::new(tools![mutation_begin, mutation_record, mutation_status])
            .with_session(Session::new("s1").with_service(ledger))
    }

    async fn begin(harness: &Harness) -> String {
        let begun = harness.ok("mutation_begin", json!({ "action": "deploy" })).await;
        let data = begun.to_structured().unwrap();
        data["id"].as_str().unwrap().to_owned()
    }

    fn record(id: &str, phase: &str) -> Value {
        json!({ "transaction_id": id, "phase": phase, "details": "as said" })
    }

    // F157, F158
    #[tokio::test]
    async fn a_mutation_is_recorded_and_blocked_when_it_repeats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let first = harness(Ledger::open(&path).unwrap());
        let id = begin(&first).await;
        let early = first.error("mutation_record", record(&id, "verified")).await;
        assert_eq!(early.kind(), ErrorKind::Conflict);
        first.ok("mutation_record", record(&id, "dry_run")).await;
        first.ok("mutation_record", record(&id, "applied")).await;
        let done = first.ok("mutation_record", record(&id, "verified")).await;
        let expected = format!(
            "{id} verified: deploy\n  plan\n  dry_run: as said\n  applied: as said\n  verified: as said"
        );
        assert_eq!(done.as_text(), expected);
        let second = begin(&first).await;
        first.ok("mutation_record", record(&second, "applied")).await;

        // Another program goes on with the same file.
        let next = harness(Ledger::open(&path).unwrap());
        let status = next.ok("mutation_status", json!({ "action": "deploy" })).await;
        assert!(status.as_text().ends_with("and would be blocked."), "{}", status.as_text());
        let error = next.error("mutation_begin", json!({ "action": "deploy" })).await;
        assert_eq!(error.kind(), ErrorKind::Denied);
        next.ok("mutation_begin", json!({ "action": "another" })).await;
        let one = next.ok("mutation_status", json!({ "transaction_id": id })).await;
        assert_eq!(one.as_text(), expected);
        let gone = next.error("mutation_status", json!({ "transaction_id": "m1" })).await;
        assert_eq!(gone.kind(), ErrorKind::NotFound);
    }
}
